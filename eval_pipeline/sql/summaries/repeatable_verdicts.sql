-- Scores that a judge model gave, by judge under its version at work, in an order that looks drawn and stays the same.
-- Of each model and experiment the latest run of the current benchmark version, if possible one that is complete.
with graded_runs as (
    select metrics.run_id, metrics.model, judge, judge_version, metrics.benchmark_version
    from metrics
    join runs using (run_id, model)
    where slice = 'all'
        and judged > 0
        and metrics.benchmark_version in (select benchmark_version from benchmark_versions where is_current)
    qualify row_number() over (
        partition by metrics.model, metrics.experiment, judge, judge_version
        order by complete desc, opened_at desc, metrics.run_id) = 1
),
scores as (
    select judge, judge_version, benchmark_version, model, run_id, prediction_id, finished_at
    from judged
    join graded_runs using (run_id, model, judge, judge_version)
    where score is not null
        and judge <> 'rules'
        and coalesce(graded_by, '') <> 'rules'
        -- Verdicts from before it was kept who gave them.
        and (graded_by is not null or attempts > 0)
),
at_work as (
    select judge, arg_max(judge_version, (finished_at, judge_version)) as judge_version
    from scores
    group by judge
)
select
    judge,
    judge_version,
    benchmark_version,
    model,
    run_id,
    prediction_id,
    row_number() over (partition by judge order by md5(prediction_id), prediction_id) as place
from scores
semi join at_work using (judge, judge_version)
order by judge, place
