-- How the runs of a launch stand: one row per model.
select
    model, simulated, run_id, experiment, planned, answered, failed, judged,
    accuracy, accuracy_low, accuracy_high, cost_usd, judge, complete, incomplete_because
from run_standing
where stands and list_contains($runs, run_id) and list_contains($models, model)
order by accuracy desc nulls last, model
