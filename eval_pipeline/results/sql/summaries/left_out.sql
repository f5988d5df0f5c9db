-- Runs of the published benchmark version that are on no leaderboard that is shown, and why: the latest of each
-- model if that is such a one; and the latest that a judge has scored, if never under its official version.
with official as (
    select distinct judge, judge_version, true as is_official
    from leaderboard_entries
    where is_official
),
latest as (
    select
        model, experiment, run_id,
        case
            when incomplete_because is not null then incomplete_because
            when scope = 'filtered' then 'only a part was asked'
            else 'judged only with another prompt or limit of ' || judge
        end as reason
    from metrics
    join runs using (run_id, model, experiment, benchmark_version, scope)
    left join official using (judge, judge_version)
    where slice = 'all'
        and benchmark_version in (select benchmark_version from benchmark_versions where is_published)
    qualify row_number() over (
            partition by model, experiment
            order by opened_at desc, run_id, complete desc, is_official nulls last, judged_at desc) = 1
        and (scope = 'filtered' or not complete or is_official is null)
),
otherwise_judged as (
    select model, experiment, run_id, 'judged only with another prompt or limit of ' || judge as reason
    from leaderboard_entries
    qualify not bool_or(is_official) over (partition by model, experiment, judge)
        and row_number() over (
            partition by model, experiment, judge order by opened_at desc, run_id, judge_version) = 1
)
select model, experiment, left(run_id, 8) as run, reason
from (from latest union from otherwise_judged)
order by model, experiment, run, reason
