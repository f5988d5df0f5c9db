-- Why items failed: what an analyst found out about each failure, and what people say instead.
create table diagnoses (
    run_id           varchar not null,
    model            varchar not null,
    prediction_id    varchar not null,
    suite            varchar not null,
    item_id          varchar not null,
    sample           bigint not null,
    judge            varchar not null,
    judge_version    varchar not null,
    analyst          varchar not null,
    analyst_version  varchar not null,
    outcome          varchar not null,
    reason           varchar,
    failed_step      varchar,
    error            varchar,
    classification   varchar,
    gap              varchar,
    reasoning        varchar,
    model_snippet    varchar,
    expected_snippet varchar,
    raw_reply        varchar,
    cost_usd         double,
    cost_estimated   boolean,
    launch           varchar,
    carried_from     varchar,
    diagnosed_at     timestamp
);
comment on table diagnoses is 'What an analyst found out about failures: one row per wrong reply and version of a judge that found it wrong. A later failure to explain does not undo an explanation.';
comment on column diagnoses.run_id is 'The run.';
comment on column diagnoses.model is 'The model that was wrong.';
comment on column diagnoses.prediction_id is 'The reply.';
comment on column diagnoses.suite is 'The item''s suite.';
comment on column diagnoses.item_id is 'The item.';
comment on column diagnoses.sample is 'The number of the sample, from 0.';
comment on column diagnoses.judge is 'The judge that found the reply wrong.';
comment on column diagnoses.judge_version is 'The version of that judge.';
comment on column diagnoses.analyst is 'The model that looked into the failure.';
comment on column diagnoses.analyst_version is 'Equal for diagnoses that were asked for in the same way: prompt, form and token limit.';
comment on column diagnoses.outcome is 'How asking the analyst ended; ok if there is an explanation.';
comment on column diagnoses.reason is 'Why there is no explanation; empty if there is one.';
comment on column diagnoses.failed_step is 'The step that failed, as the analyst names it; NULL for answers to questions.';
comment on column diagnoses.error is 'The failure in a line.';
comment on column diagnoses.classification is 'MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK or KNOWN_GAP, as the analyst sees it; NULL without an explanation.';
comment on column diagnoses.gap is 'Of a KNOWN_GAP: the entry of the task''s GAPS.txt.';
comment on column diagnoses.reasoning is 'Why it is classified so, in two or three sentences.';
comment on column diagnoses.model_snippet is 'What the model wrote, the part that matters.';
comment on column diagnoses.expected_snippet is 'What was expected in its place.';
comment on column diagnoses.raw_reply is 'What the analyst replied, as it came.';
comment on column diagnoses.cost_usd is 'What the analyst cost, all attempts included; NULL if unknown.';
comment on column diagnoses.cost_estimated is 'Whether the cost was computed from the catalog''s prices.';
comment on column diagnoses.launch is 'The Dagster run that asked the analyst.';
comment on column diagnoses.carried_from is 'The earlier run that paid for it, if it was taken over with the reply; NULL if it was asked for here.';
comment on column diagnoses.diagnosed_at is 'When the analyst had replied, in UTC.';

create table reclassified (
    run_id         varchar not null,
    model          varchar not null,
    suite          varchar not null,
    item_id        varchar not null,
    sample         bigint,
    classification varchar,
    note           varchar,
    classified_at  timestamp
);
comment on table reclassified is 'What people say that failures are (evals classify), the latest word on each.';
comment on column reclassified.run_id is 'The run.';
comment on column reclassified.model is 'The model.';
comment on column reclassified.suite is 'The item''s suite.';
comment on column reclassified.item_id is 'The item.';
comment on column reclassified.sample is 'The sample that is meant; NULL for all of them.';
comment on column reclassified.classification is 'MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK or KNOWN_GAP; NULL where they leave it to the analyst again.';
comment on column reclassified.note is 'Why.';
comment on column reclassified.classified_at is 'When it was said, in UTC.';

create view failure_analysis as
with failures as (
    select run_id, model, prediction_id, suite, item_id, sample, judge, judge_version, failed_step
    from judged
    where score < 1
),
said as (
    select
        run_id, model, suite, item_id, failures.sample,
        arg_max_null(classification, classified_at) as classification,
        arg_max(note, classified_at) as note,
        max(classified_at) as classified_at
    from failures
    join reclassified using (run_id, model, suite, item_id)
    where reclassified.sample is null or reclassified.sample = failures.sample
    group by all
)
select
    run_id, model, suite, item_id, sample, prediction_id, judge, judge_version,
    failures.failed_step,
    error,
    coalesce(said.classification, diagnoses.classification) as classification,
    diagnoses.classification as analyst_classification,
    said.classification is not null as overridden,
    case when overridden then note end as override_note,
    case when overridden then classified_at end as overridden_at,
    gap, reasoning, model_snippet, expected_snippet, analyst, analyst_version,
    reason as unexplained_because,
    cost_usd, diagnosed_at
from failures
left join (select * exclude (suite, item_id, sample) from diagnoses) diagnoses
    using (run_id, model, prediction_id, judge, judge_version)
left join said using (run_id, model, suite, item_id, sample)
where analyst is not null or said.classification is not null;
comment on view failure_analysis is 'Why replies are wrong: one row per wrong reply that was analysed or classified, and version of a judge that found it wrong. What people say wins over the analyst.';
comment on column failure_analysis.failed_step is 'The first step that was not perfect, as in judged; NULL for answers to questions.';
comment on column failure_analysis.classification is 'MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK or KNOWN_GAP: what a person says, else the analyst; NULL if neither does.';
comment on column failure_analysis.analyst_classification is 'The same as the analyst sees it.';
comment on column failure_analysis.overridden is 'Whether a person has classified it.';
comment on column failure_analysis.override_note is 'Why, in that person''s words.';
comment on column failure_analysis.overridden_at is 'When that was, in UTC.';
comment on column failure_analysis.unexplained_because is 'Why the analyst has no explanation; empty if it has one.';

-- What went wrong in runs, reply by reply: asked in vain (no answer), judged in vain (no verdict), or scored below 1 by
-- the judge that stands for the run (wrong). What was not asked or not judged yet is not among it. The runs are named by
-- their ids and, in the same order, their models. What is wrong comes with what is known of why; error is what the
-- analyst says of it in a line, else what the server said.
create macro failed_replies(run_ids, models) as table
with meant as (
    select unnest(run_ids) as run_id, unnest(models) as model
),
standing as (
    select run_id, model, judge, judge_version
    from run_standing
    semi join meant using (run_id, model)
    where stands
),
verdicts as (
    select
        run_id, model, prediction_id, judge, judge_version, outcome as judge_outcome, score, failed_step,
        extracted_answer, reason, true as is_judged
    from judged
    semi join standing using (run_id, model, judge, judge_version)
    where score is null or score < 1
),
replies as (
    select
        run_id,
        model,
        prediction_id,
        case when not is_result then 'no answer' when score is null then 'no verdict' else 'wrong' end as went,
        suite,
        item_id,
        sample,
        carried_from,
        outcome,
        error,
        judge,
        judge_version,
        judge_outcome,
        score,
        failed_step,
        extracted_answer,
        reason
    from predictions
    semi join meant using (run_id, model)
    semi join plans using (run_id, model, suite, item_id)
    left join verdicts using (run_id, model, prediction_id)
    where not is_result or is_judged
),
analysis as (
    select
        run_id, model, prediction_id, judge, judge_version, error as error_in_a_line, classification,
        analyst_classification, overridden, override_note, overridden_at, reasoning, model_snippet, expected_snippet,
        gap, analyst, analyst_version, unexplained_because
    from failure_analysis
    semi join standing using (run_id, model, judge, judge_version)
)
select
    run_id,
    model,
    experiment,
    simulated,
    benchmark_version,
    went,
    suite,
    category,
    items.kind,
    coalesce(gaps, '') <> '' as has_gaps,
    item_id,
    sample,
    samples,
    prediction_id,
    carried_from,
    outcome,
    coalesce(error_in_a_line, error) as error,
    judge,
    judge_version,
    judge_outcome,
    score,
    failed_step,
    extracted_answer,
    reason,
    classification,
    analyst_classification,
    coalesce(overridden, false) as overridden,
    override_note,
    overridden_at,
    reasoning,
    model_snippet,
    expected_snippet,
    gap,
    analyst,
    analyst_version,
    unexplained_because
from replies
join runs using (run_id, model)
join benchmark_versions using (benchmark_version, suite)
join items using (suite, suite_version, item_id)
left join analysis using (run_id, model, prediction_id, judge, judge_version)
where sample < samples;
