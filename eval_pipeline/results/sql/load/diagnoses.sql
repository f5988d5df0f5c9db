-- journal: diagnoses -> diagnoses. What was said of a reply that was replaced no longer stands, a later failure to
-- explain does not undo an explanation, and all attempts cost.
insert into diagnoses
with said as (
    select unnest(json_transform(line, '{
        "run_id": "varchar",
        "model": "varchar",
        "prediction_id": "varchar",
        "suite": "varchar",
        "item_id": "varchar",
        "sample": "bigint",
        "judge": "varchar",
        "judge_version": "varchar",
        "analyst": "varchar",
        "analyst_version": "varchar",
        "outcome": "varchar",
        "reason": "varchar",
        "explanation": {
            "failed_step": "varchar",
            "error": "varchar",
            "classification": "varchar",
            "gap": "varchar",
            "reasoning": "varchar",
            "model_snippet": "varchar",
            "expected_snippet": "varchar"
        },
        "raw_reply": "varchar",
        "usage": {"cost_usd": "double", "cost_estimated": "boolean"},
        "launch": "varchar",
        "carried_from": "varchar",
        "finished_at": "timestamp"
    }'))
    from lines
)
select
    run_id, model, prediction_id, suite, item_id, sample, judge, judge_version, analyst, analyst_version, outcome,
    reason,
    explanation.failed_step,
    explanation.error,
    explanation.classification,
    explanation.gap,
    explanation.reasoning,
    explanation.model_snippet,
    explanation.expected_snippet,
    raw_reply,
    sum(try_cast(usage.cost_usd as decimal(24, 15))) over (
        partition by run_id, model, prediction_id, judge, judge_version),
    usage.cost_estimated,
    launch,
    carried_from,
    finished_at
from said
semi join predictions using (prediction_id, run_id, model)
qualify row_number() over (
    partition by run_id, model, prediction_id, judge, judge_version
    order by explanation.classification is null, finished_at desc) = 1
