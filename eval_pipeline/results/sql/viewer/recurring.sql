-- Items that a model got wrong again and again: in at least two of its runs, by the judge that stands for each of them.
with standing as (
    select run_id, model, judge, judge_version
    from run_standing
    where stands and model = $model
),
scored as (
    select run_id, suite, item_id, avg(score) as score, max(finished_at) as finished_at
    from judged
    semi join standing using (run_id, model, judge, judge_version)
    where score is not null and carried_from is null
    group by all
)
select
    suite,
    item_id,
    any_value(category) as category,
    count(distinct run_id) filter (score < 1) as wrong_runs,
    count(distinct run_id) as runs,
    arg_max(run_id, finished_at) filter (score < 1) as run_id
from scored
left join (
    select suite, item_id, any_value(category) as category from items group by all
) as described using (suite, item_id)
group by suite, item_id
having count(distinct run_id) filter (score < 1) > 1
order by wrong_runs / runs desc, wrong_runs desc, suite, item_id
limit $most
