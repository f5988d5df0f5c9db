-- journal: judged -> judged. A verdict on a reply that was replaced no longer stands, nor does one of
-- a judge's older prompt; a later failure to judge does not undo a score. All attempts cost.
insert into judged
with records as (
    select *
    from read_json($files, format = 'newline_delimited', ignore_errors = true, hive_partitioning = false,
        maximum_object_size = 134217728, columns = {
            prediction_id: 'varchar',
            run_id: 'varchar',
            model: 'varchar',
            suite: 'varchar',
            item_id: 'varchar',
            sample: 'bigint',
            judge: 'varchar',
            judge_version: 'varchar',
            outcome: 'varchar',
            score: 'double',
            reason: 'varchar',
            extracted_answer: 'varchar',
            confidence: 'double',
            raw_reply: 'varchar',
            usage: 'struct(input_tokens bigint, output_tokens bigint, cost_usd double, cost_estimated boolean)',
            latency_s: 'double',
            attempts: 'bigint',
            finished_at: 'timestamp'
        })
    where prediction_id is not null
),
verdicts as (
    select
        *,
        arg_max(judge_version, finished_at) over (partition by run_id, model, judge) as newest_version,
        sum(try_cast(usage.cost_usd as decimal(24, 15))) over (
            partition by run_id, model, suite, item_id, sample, judge) as cost_of_all_attempts
    from records
)
select
    verdicts.prediction_id,
    verdicts.run_id,
    verdicts.model,
    verdicts.suite,
    verdicts.item_id,
    verdicts.sample,
    judge,
    judge_version,
    verdicts.outcome,
    score,
    reason,
    extracted_answer,
    confidence,
    raw_reply,
    usage.input_tokens,
    usage.output_tokens,
    cost_of_all_attempts,
    usage.cost_estimated,
    verdicts.latency_s,
    verdicts.attempts,
    verdicts.finished_at
from verdicts
join predictions on predictions.prediction_id = verdicts.prediction_id
    and predictions.run_id = verdicts.run_id and predictions.model = verdicts.model
where judge_version = newest_version
qualify row_number() over (
    partition by verdicts.run_id, verdicts.model, verdicts.suite, verdicts.item_id, verdicts.sample, judge
    order by score is null, verdicts.finished_at desc) = 1
