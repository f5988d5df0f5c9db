-- journal: predictions -> predictions; the last line for an item wins, and the tokens and costs of all
-- lines are added up.
-- The texts are wide: who wins is found out without them, so that they need not be sorted in memory.
create temp table replies as
select unnest(json_transform(line, '{
    "prediction_id": "varchar",
    "run_id": "varchar",
    "model": "varchar",
    "suite": "varchar",
    "item_id": "varchar",
    "sample": "bigint",
    "outcome": "varchar",
    "answer": "varchar",
    "reasoning": "varchar",
    "error": "varchar",
    "finish_reason": "varchar",
    "usage": {
        "input_tokens": "bigint",
        "output_tokens": "bigint",
        "reasoning_tokens": "bigint",
        "cached_tokens": "bigint",
        "cost_usd": "double",
        "cost_estimated": "boolean"
    },
    "latency_s": "double",
    "first_token_s": "double",
    "generation_s": "double",
    "attempts": "bigint",
    "generation_id": "varchar",
    "served_by": "varchar",
    "model_reported": "varchar",
    "system_fingerprint": "varchar",
    "request_hash": "varchar",
    "carried_from": "varchar",
    "finished_at": "timestamp"
}'))
from lines;

insert into predictions by name
with tries as (
    select
        rowid as reply,
        run_id, model, suite, item_id, sample, finished_at, prediction_id, usage,
        outcome in ('ok', 'refused', 'truncated', 'truncated_thinking', 'content_filter') as is_result,
        try_cast(usage.cost_usd as decimal(24, 15)) as cost_usd,
        -- What failed and used nothing, as far as anybody told, is free.
        cost_usd is not null
            or not is_result and usage.input_tokens is null and usage.output_tokens is null as cost_known
    from replies
    where prediction_id is not null
),
standing as (
    select
        reply,
        is_result,
        sum(usage.input_tokens) over item as input_tokens,
        sum(usage.output_tokens) over item as output_tokens,
        sum(usage.reasoning_tokens) over item as reasoning_tokens,
        sum(usage.cached_tokens) over item as cached_tokens,
        case when bool_and(cost_known) over item then sum(cost_usd) over item end as cost_usd,
        coalesce(bool_or(usage.cost_estimated) filter (cost_usd is not null) over item, usage.cost_estimated)
            as cost_estimated
    from tries
    window item as (partition by run_id, model, suite, item_id, sample)
    qualify row_number() over (
        partition by run_id, model, suite, item_id, sample order by finished_at desc, prediction_id) = 1
)
select
    prediction_id,
    run_id,
    model,
    suite,
    item_id,
    sample,
    outcome,
    is_result,
    answer,
    reasoning,
    error,
    finish_reason,
    input_tokens,
    output_tokens,
    reasoning_tokens,
    cached_tokens,
    cost_usd,
    cost_estimated,
    latency_s,
    first_token_s,
    attempts,
    generation_id,
    served_by,
    model_reported,
    request_hash,
    carried_from,
    finished_at,
    generation_s,
    system_fingerprint,
    -- Reasoning that was not sent as text was over when the clock began to run.
    case when latency_s > first_token_s then
        nullif(greatest(usage.output_tokens
            - if(coalesce(reasoning, '') = '', coalesce(usage.reasoning_tokens, 0), 0), 0), 0)
            / (latency_s - first_token_s)
    end as output_tokens_per_s
from replies
join standing on standing.reply = replies.rowid;

drop table replies
