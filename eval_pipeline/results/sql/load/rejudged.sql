-- journal: rejudged -> rejudged. As with judged, a verdict on a reply that was replaced no longer stands, a later
-- failure to judge does not undo a score, and all attempts cost.
insert into rejudged
with repeats as (
    select unnest(json_transform(line, '{
        "prediction_id": "varchar",
        "run_id": "varchar",
        "model": "varchar",
        "suite": "varchar",
        "item_id": "varchar",
        "sample": "bigint",
        "judge": "varchar",
        "judge_version": "varchar",
        "repeat": "bigint",
        "outcome": "varchar",
        "score": "double",
        "reason": "varchar",
        "raw_reply": "varchar",
        "usage": {"cost_usd": "double", "cost_estimated": "boolean"},
        "launch": "varchar",
        "finished_at": "timestamp"
    }'))
    from lines
)
select
    prediction_id,
    run_id,
    model,
    suite,
    item_id,
    sample,
    judge,
    judge_version,
    "repeat",
    outcome,
    score,
    reason,
    raw_reply,
    sum(try_cast(usage.cost_usd as decimal(24, 15))) over (
        partition by run_id, model, prediction_id, judge, judge_version, "repeat"),
    usage.cost_estimated,
    launch,
    finished_at
from repeats
semi join predictions using (prediction_id, run_id, model)
where "repeat" is not null
qualify row_number() over (
    partition by run_id, model, prediction_id, judge, judge_version, "repeat"
    order by score is null, finished_at desc) = 1
