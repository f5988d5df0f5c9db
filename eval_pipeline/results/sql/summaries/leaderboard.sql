-- The leaderboard as it is printed: of each judge the official version; the table has the others too.
select
    rank,
    rank_low,
    rank_high,
    ties,
    model,
    display_name,
    experiment,
    scope,
    accuracy,
    accuracy_low,
    accuracy_high,
    standard_deviation,
    runs,
    judged,
    calibration_error,
    cost_usd,
    mean_latency_s,
    judge,
    judge_version,
    simulated,
    left(run_id, 8) as run
from leaderboard
where is_official
order by judge, experiment, scope, rank, model
