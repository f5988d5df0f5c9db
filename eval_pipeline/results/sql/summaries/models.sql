-- Every model of the catalog with how its latest run went, the selected ones first.
with latest as (
    select run_id, model, experiment, scope, opened_at
    from runs
    qualify row_number() over (partition by model order by opened_at desc, run_id) = 1
),
standing as (
    select run_id, model, judged, accuracy, accuracy_low, accuracy_high
    from run_standing
    where stands
)
select
    model,
    gateway,
    display_name,
    prompt_price,
    completion_price,
    context_length,
    max_output_tokens,
    sees_images,
    web_search,
    selected and listed as selected,
    listed,
    kept_out_because,
    simulated,
    created_at,
    last_seen_at,
    run_id,
    experiment,
    scope,
    opened_at,
    judged,
    accuracy,
    accuracy_low,
    accuracy_high
from model_catalog
left join latest using (model)
left join standing using (run_id, model)
order by selected and listed desc, model
