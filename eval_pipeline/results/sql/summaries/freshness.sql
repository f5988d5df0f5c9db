-- Whose results are how old: the never evaluated first, then the oldest; filtered runs do not make fresh.
select
    model,
    coalesce(experiment, 'none') as experiment,
    strftime(last_complete_at, '%Y-%m-%d %H:%M') as last_complete,
    round(stale_days, 1) as stale_days,
    strftime(last_attempt_at, '%Y-%m-%d %H:%M') as last_attempt,
    round(run_cost_usd, 2) as run_cost_usd
from freshness
where not filtered
order by last_complete_at nulls first, model, experiment
