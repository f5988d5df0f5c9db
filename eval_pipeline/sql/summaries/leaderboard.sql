-- The leaderboard as it is printed.
select
    rank,
    model,
    display_name,
    experiment,
    scope,
    accuracy,
    accuracy_low,
    accuracy_high,
    judged,
    calibration_error,
    cost_usd,
    latency_p50_s,
    simulated,
    left(run_id, 8) as run
from leaderboard
order by experiment, scope, rank, model
