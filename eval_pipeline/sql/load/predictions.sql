-- journal: predictions -> predictions; the last line for an item wins, and all lines cost.
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

insert into predictions
with standing as (
    select
        rowid as reply,
        sum(try_cast(usage.cost_usd as decimal(24, 15))) over (
            partition by run_id, model, suite, item_id, sample) as cost_of_all_attempts
    from replies
    where prediction_id is not null
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
    outcome in ('ok', 'refused', 'truncated', 'truncated_thinking', 'content_filter'),
    answer,
    reasoning,
    error,
    finish_reason,
    usage.input_tokens,
    usage.output_tokens,
    usage.reasoning_tokens,
    usage.cached_tokens,
    cost_of_all_attempts,
    usage.cost_estimated,
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
    system_fingerprint
from replies
join standing on standing.reply = replies.rowid;

drop table replies
