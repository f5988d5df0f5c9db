-- How models stood under an older benchmark version: of each model, experiment and judge the latest complete run. Ranks
-- that the data allow, and ties, are computed for the published version only.
select
    null as rank, null as rank_low, null as rank_high, '' as ties,
    metrics.model,
    coalesce(display_name, metrics.model) as display_name,
    vendor,
    provider,
    metrics.experiment,
    metrics.scope,
    judge,
    judge_version,
    metrics.simulated,
    1 as runs,
    metrics.samples,
    items_judged as judged,
    accuracy,
    accuracy_low,
    accuracy_high,
    null as standard_deviation,
    calibration_error,
    cost_usd,
    cost_estimated,
    latency_p50_s,
    0 as incomplete_runs,
    metrics.failed as failed_replies,
    run_id,
    [run_id] as run_ids,
    opened_at,
    metrics.benchmark_version
from metrics
join runs using (run_id, model)
left join model_catalog using (model)
where slice = 'all' and complete and metrics.scope <> 'filtered' and metrics.benchmark_version = $version
qualify row_number() over (
    partition by metrics.model, metrics.experiment, metrics.scope, judge
    order by opened_at desc, judged_at desc, run_id, judge_version) = 1
order by metrics.experiment <> 'default', judge, metrics.experiment, metrics.scope, round(accuracy, 12) desc, metrics.model
