-- Scores that a judge model gave, by judge and version, the one last at work first, in an order that looks drawn and
-- stays the same. Of each model and experiment the latest run, if possible one that is complete: of the published
-- benchmark version; of the current one where the judge has scored nothing of the published one under that version.
with graded_runs as (
    select metrics.run_id, metrics.model, judge, judge_version, metrics.benchmark_version
    from metrics
    join runs using (run_id, model)
    where slice = 'all'
        and judged > 0
        and metrics.benchmark_version in (
            select benchmark_version from benchmark_versions where is_published or is_current)
    qualify row_number() over (
        partition by metrics.model, metrics.experiment, metrics.benchmark_version, judge, judge_version
        order by complete desc, opened_at desc, metrics.run_id) = 1
),
scores as (
    select
        judge, judge_version, benchmark_version, model, run_id, prediction_id, finished_at,
        benchmark_version in (select benchmark_version from benchmark_versions where is_published) as is_published
    from judged
    join graded_runs using (run_id, model, judge, judge_version)
    where score is not null
        and judge not in ('rules', 'steps')
        and coalesce(graded_by, '') not in ('rules', 'steps')
        -- Verdicts from before it was kept who gave them.
        and (graded_by is not null or attempts > 0)
    qualify is_published = bool_or(is_published) over (partition by judge, judge_version)
)
select
    judge,
    judge_version,
    benchmark_version,
    model,
    run_id,
    prediction_id,
    row_number() over (partition by judge, judge_version order by md5(prediction_id), prediction_id) as place,
    max(finished_at) over (partition by judge, judge_version) as last_at_work
from scores
order by judge, last_at_work desc, judge_version, place
