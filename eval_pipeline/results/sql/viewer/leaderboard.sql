-- The leaderboard as its page shows it, of each judge the official version; with $suite, and perhaps $category, over
-- that slice alone: then the order is by its accuracy, and there are no ranks.
with sliced as (
    select model, experiment, scope, judge, judge_version, judged, accuracy, accuracy_low, accuracy_high
    from leaderboard_slices
    where suite = $suite and category is not distinct from $category
)
select
    if($suite is null, board.rank, null) as rank,
    if($suite is null, rank_low, null) as rank_low,
    if($suite is null, rank_high, null) as rank_high,
    if($suite is null, ties, '') as ties,
    board.model,
    board.display_name,
    catalog.vendor,
    catalog.provider,
    board.experiment,
    board.scope,
    board.judge,
    board.judge_version,
    board.simulated,
    runs,
    samples,
    if($suite is null, board.judged, sliced.judged) as judged,
    if($suite is null, board.accuracy, sliced.accuracy) as accuracy,
    if($suite is null, board.accuracy_low, sliced.accuracy_low) as accuracy_low,
    if($suite is null, board.accuracy_high, sliced.accuracy_high) as accuracy_high,
    standard_deviation,
    if($suite is null, calibration_error, null) as calibration_error,
    cost_usd,
    cost_estimated,
    latency_p50_s,
    incomplete_runs,
    failed_replies,
    run_id,
    run_ids,
    opened_at,
    benchmark_version
from leaderboard as board
left join sliced using (model, experiment, scope, judge, judge_version)
left join model_catalog as catalog on catalog.model = board.model
where is_official and ($suite is null or sliced.accuracy is not null)
order by
    board.experiment <> 'default', board.judge, board.experiment, board.scope,
    round(if($suite is null, board.accuracy, sliced.accuracy), 12) desc, board.model
