-- Failed items of a run that other models failed too: in the latest run of each model, of the same benchmark version and
-- experiment, in which the judge that stands has a score for the item. Simulated models are not compared with others.
-- One row for all items that as many of as many models failed.
with failures as (
    select distinct suite, item_id, benchmark_version, experiment, simulated
    from failed_replies([$run_id], [$model])
    where went = 'wrong' and judge = $judge and judge_version = $judge_version
),
scored as (
    select run_id, model, suite, item_id, opened_at, min(score) < 1 as is_failed
    from judged
    semi join (from run_standing where stands) standing using (run_id, model, judge, judge_version)
    join (select run_id, model, benchmark_version, experiment, simulated, opened_at from runs) run using (run_id, model)
    join failures using (suite, item_id, benchmark_version, experiment, simulated)
    where score is not null and (model <> $model or run_id = $run_id)
    group by all
),
latest as (
    select suite, item_id, model, arg_max(is_failed, (opened_at, run_id)) as is_failed
    from scored
    group by all
),
shared as (
    select
        suite || '/' || item_id as item,
        count(*) filter (is_failed) as count,
        count(*) as of,
        list(model) filter (is_failed) as models
    from latest
    group by suite, item_id
    having count >= 2
)
select
    count || ' of ' || of || ' models' as subject,
    count,
    of,
    list(item order by item) as items,
    list_sort(list_distinct(flatten(list(models)))) as models
from shared
group by count, of
order by count / of desc, count desc
limit $most
