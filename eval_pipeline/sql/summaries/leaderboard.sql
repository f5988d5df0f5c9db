-- The leaderboard as it is printed.
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
-- Of each judge on it the version last at work; the table has the others too.
semi join (
    select judge, arg_max(judge_version, (finished_at, judge_version)) as judge_version
    from judged
    semi join leaderboard using (judge, judge_version)
    group by judge
) using (judge, judge_version)
order by judge, judge_version, experiment, scope, rank, model
