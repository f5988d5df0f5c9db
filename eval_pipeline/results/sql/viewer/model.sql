-- A model as the catalog has it; one that was only ever asked has a name and no more.
select
    model, gateway, vendor, provider, display_name, sees_images, web_search, context_length, max_output_tokens,
    prompt_price, completion_price, created_at, first_seen_at, last_seen_at, selected and listed as selected, listed,
    kept_out_because, simulated
from model_catalog
where model = $model
union all by name
select distinct model, model as display_name, simulated
from runs
where model = $model and model not in (select model from model_catalog)
