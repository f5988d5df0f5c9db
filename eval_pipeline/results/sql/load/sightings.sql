-- journal: sightings -> model_catalog, as each model was described last
insert into model_catalog
with sightings as (
    -- One that is not listed was not seen: it is as it was before its gateway went from the settings.
    select unnest(model), selected, kept_out, coalesce(listed, true) as listed, seen_at
    from read_json($files, format = 'newline_delimited', ignore_errors = true, hive_partitioning = false, columns = {
        model: 'struct(
            id varchar, gateway varchar, request_name varchar, vendor varchar, name varchar,
            provider varchar, display_name varchar, input_modalities varchar[],
            context_length bigint, max_output_tokens bigint,
            prices struct(prompt double, completion double, cached double, reasoning double, request double),
            system_role boolean, temperature boolean, json_schema boolean, streaming boolean, dialect varchar,
            created_at timestamp, simulated boolean, web_search boolean)',
        selected: 'boolean',
        kept_out: 'varchar',
        listed: 'boolean',
        seen_at: 'timestamp'
    })
    where model is not null
)
select
    id,
    gateway,
    request_name,
    vendor,
    name,
    provider,
    display_name,
    list_contains(input_modalities, 'image'),
    input_modalities,
    context_length,
    max_output_tokens,
    prices.prompt,
    prices.completion,
    prices.cached,
    prices.request,
    system_role,
    temperature,
    json_schema,
    streaming,
    simulated,
    selected,
    listed and seen_at = max(seen_at) over (partition by gateway),
    created_at,
    min(seen_at) over (partition by id),
    coalesce(max(seen_at) filter (listed) over (partition by id), seen_at),
    coalesce(dialect, 'chat_completions'),
    prices.reasoning,
    kept_out,
    coalesce(web_search, false)
from sightings
qualify row_number() over (partition by id order by seen_at desc) = 1
