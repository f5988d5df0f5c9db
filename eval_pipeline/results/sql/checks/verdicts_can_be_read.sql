-- Judges of latest runs, in the version last at work, of whose verdicts more than 2 % could not be read.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
),
judges as (
    select run_id, model, judge, judge_version
    from latest
    join judged using (run_id, model)
    qualify row_number() over (partition by run_id, model, judge order by finished_at desc, judge_version) = 1
)
select
    model,
    left(run_id, 8) as run,
    judge,
    count(*) as verdicts,
    count(*) filter (outcome = 'judge_unparsable') as unreadable,
    unreadable / count(*) as share,
    mode(left(reason, 200) order by reason) filter (outcome = 'judge_unparsable') as reason
from judges
join judged using (run_id, model, judge, judge_version)
where attempts > 0
group by run_id, model, judge
having share > 0.02
order by share desc, model, judge, run
