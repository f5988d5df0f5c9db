-- The latest run of each model and experiment, with what it lacks.
select
    model,
    simulated,
    experiment,
    left(run_id, 8) as run,
    judged,
    planned,
    accuracy,
    accuracy_low,
    accuracy_high,
    calibration_error,
    cost_usd,
    latency_p50_s,
    incomplete_because
from metrics
join runs using (run_id, model, experiment, simulated, planned)
where slice = 'all'
qualify row_number() over (partition by model, experiment, judge order by opened_at desc) = 1
order by accuracy desc nulls last, model
