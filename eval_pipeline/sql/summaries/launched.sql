-- How the runs of a launch stand, for the judge who has got farthest: one row per model.
select
    model, simulated, run_id, experiment, planned, answered, failed, judged,
    accuracy, accuracy_low, accuracy_high, cost_usd, judge, complete, incomplete_because
from metrics
where slice = 'all' and list_contains($runs, run_id) and list_contains($models, model)
qualify row_number() over (partition by run_id, model order by complete desc, judged desc, judged_at desc, judge) = 1
order by accuracy desc nulls last, model
