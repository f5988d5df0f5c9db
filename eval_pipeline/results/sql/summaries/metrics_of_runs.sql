-- The numbers of the latest run of each model, experiment, scope and judge, or of the run $run_id, in slices of the
-- kind $slice. With $strict of the latest complete one; without, also of runs that nobody has judged yet, if they are
-- the latest. $models, $experiment and $judge narrow it; NULL means any. Of a judge's versions the official one counts.
with official as (
    select distinct judge, judge_version, true as is_official
    from leaderboard_entries
    where is_official
),
meant as (
    select
        run_id, model, metrics.experiment, metrics.scope, judge, judge_version, complete, judged, judged_at, opened_at,
        is_official,
        opened_at = max(opened_at) over (partition by model, metrics.experiment, metrics.scope) as is_latest
    from metrics
    join runs using (run_id, model)
    left join official using (judge, judge_version)
    where slice = 'all'
        and ($run_id is null or run_id = $run_id)
        and ($models is null or list_contains($models::varchar[], model))
        and ($experiment is null or metrics.experiment = $experiment)
        and ($judge is null or judge is null or judge = $judge)
),
chosen as (
    select run_id, model, judge, judge_version
    from meant
    where complete or (not $strict and (judge is not null or is_latest))
    qualify row_number() over (
        partition by model, experiment, scope, judge
        order by opened_at desc, run_id, complete desc, is_official nulls last, judged desc, judged_at desc,
            judge_version) = 1
)
select metrics.*
from metrics
join chosen
    on metrics.run_id = chosen.run_id
    and metrics.model = chosen.model
    and metrics.judge is not distinct from chosen.judge
    and metrics.judge_version is not distinct from chosen.judge_version
where slice = $slice
order by judge, suite, category, input, experiment, scope, accuracy desc nulls last, model
