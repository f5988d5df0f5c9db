-- metrics -> leaderboard: each model's latest complete run of the current benchmark version
insert into leaderboard
with latest as (
    select metrics.*, runs.opened_at
    from metrics
    join runs using (run_id, model)
    where slice = 'all'
        and complete
        and metrics.scope <> 'filtered'
        and metrics.benchmark_version in (select benchmark_version from benchmark_versions where is_current)
    qualify row_number() over (
        partition by metrics.model, metrics.experiment
        order by metrics.scope = 'full' desc, runs.opened_at desc, judged_at desc) = 1
)
select
    rank() over (partition by latest.experiment, latest.scope, latest.judge order by latest.accuracy desc),
    latest.model,
    model_catalog.display_name,
    latest.experiment,
    latest.scope,
    latest.accuracy,
    latest.accuracy_low,
    latest.accuracy_high,
    text.accuracy,
    latest.judged,
    latest.calibration_error,
    latest.cost_usd,
    latest.latency_p50_s,
    latest.judge,
    latest.run_id,
    latest.benchmark_version,
    latest.simulated,
    latest.opened_at
from latest
left join model_catalog using (model)
left join metrics text on text.run_id = latest.run_id and text.model = latest.model
    and text.judge = latest.judge and text.slice = 'input' and text.input = 'text'
order by latest.experiment, latest.scope, latest.accuracy desc, latest.model
