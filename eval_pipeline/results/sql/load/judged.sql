-- journal: judged -> judged, steps. A verdict on a reply that was replaced no longer stands; a later failure to
-- judge does not undo a score. Verdicts of a judge's older versions stay beside the newer. All attempts cost.
-- The texts are wide: who wins is found out without them, so that they need not be sorted in memory.
create temp table verdicts as
select unnest(json_transform(line, '{
    "prediction_id": "varchar",
    "run_id": "varchar",
    "model": "varchar",
    "suite": "varchar",
    "item_id": "varchar",
    "sample": "bigint",
    "judge": "varchar",
    "judge_version": "varchar",
    "prompt_hash": "varchar",
    "outcome": "varchar",
    "score": "double",
    "reason": "varchar",
    "extracted_answer": "varchar",
    "confidence": "double",
    "raw_reply": "varchar",
    "graded_by": "varchar",
    "reply_format": "varchar",
    "launch": "varchar",
    "usage": {
        "input_tokens": "bigint",
        "output_tokens": "bigint",
        "cost_usd": "double",
        "cost_estimated": "boolean"
    },
    "latency_s": "double",
    "attempts": "bigint",
    "code": {
        "steps": [{
            "name": "varchar",
            "status": "varchar",
            "reason": "varchar",
            "output": "varchar",
            "seconds": "double",
            "tests": [{"name": "varchar", "passed": "boolean", "message": "varchar"}]
        }],
        "toolchain": "varchar",
        "isolation": "varchar",
        "verdict": "varchar",
        "backend": "varchar",
        "grader_version": "varchar",
        "answer_hash": "varchar"
    },
    "carried_from": "varchar",
    "finished_at": "timestamp"
}'))
from lines;

create temp table standing as
with narrow as (
    select
        rowid as verdict, prediction_id, run_id, model, suite, item_id, sample, judge, judge_version,
        score is null as is_unscored,
        finished_at,
        sum(try_cast(usage.cost_usd as decimal(24, 15))) over (
            partition by run_id, model, suite, item_id, sample, judge, judge_version) as cost_of_all_attempts
    from verdicts
    where prediction_id is not null
)
select verdict, cost_of_all_attempts
from narrow
semi join predictions using (prediction_id, run_id, model)
qualify row_number() over (
    partition by run_id, model, suite, item_id, sample, judge, judge_version
    order by is_unscored, finished_at desc) = 1;

insert into judged
select
    prediction_id,
    run_id,
    model,
    suite,
    item_id,
    sample,
    judge,
    judge_version,
    outcome,
    score,
    reason,
    extracted_answer,
    confidence,
    raw_reply,
    usage.input_tokens,
    usage.output_tokens,
    cost_of_all_attempts,
    usage.cost_estimated,
    latency_s,
    attempts,
    finished_at,
    carried_from,
    graded_by,
    reply_format,
    launch,
    prompt_hash,
    list_filter(code.steps, step -> step.status in ('failed', 'error'))[1].name,
    len(list_filter(nullif(list_filter(code.steps, step -> step.name = 'tests')[1].tests, []), test -> test.passed)),
    nullif(len(list_filter(code.steps, step -> step.name = 'tests')[1].tests), 0),
    code.toolchain,
    code.isolation,
    code.verdict,
    code.backend,
    code.grader_version,
    code.answer_hash
from verdicts
join standing on standing.verdict = verdicts.rowid;

insert into steps
with numbered as (
    select
        prediction_id, run_id, model, suite, item_id, sample, judge, judge_version,
        unnest(range(1, len(code.steps) + 1)) as position,
        unnest(code.steps) as step
    from verdicts
    join standing on standing.verdict = verdicts.rowid
    where code is not null
)
select
    prediction_id, run_id, model, suite, item_id, sample, judge, judge_version, position,
    step.name, step.status, step.reason, step.output, step.seconds, coalesce(step.tests, [])
from numbered;

drop table standing;
drop table verdicts
