-- The latest run of each model, experiment and judge, under the judge's newest version, with what it lacks.
select
    model,
    metrics.simulated,
    metrics.experiment,
    left(run_id, 8) as run,
    judge,
    judged,
    metrics.planned,
    accuracy,
    accuracy_low,
    accuracy_high,
    standard_error_clustered,
    calibration_error,
    brier_score,
    cost_usd,
    cost_known_usd,
    costs_unknown,
    latency_p50_s,
    incomplete_because
from metrics
join runs using (run_id, model)
where slice = 'all'
qualify row_number() over (
    partition by model, metrics.experiment, judge order by opened_at desc, judged_at desc, judge_version) = 1
order by accuracy desc nulls last, model, judge
