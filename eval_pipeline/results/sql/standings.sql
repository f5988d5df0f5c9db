-- What decides whether a model is due, of each one that is selected and listed: other experiments
-- than the given one, and whole evaluations where filtered ones are made, do not count.
select
    model,
    any_value(released_at) as released_at,
    max(last_attempt_at) filter (experiment = $experiment and filtered = $filtered) as last_attempt_at,
    max(run_cost_usd) filter (experiment = $experiment and filtered = $filtered) as run_cost_usd
from freshness
group by model
order by model
