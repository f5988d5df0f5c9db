-- What went wrong in one run, reply by reply: asked in vain (no answer), judged in vain (no verdict), or scored below 1
-- by one version of a judge (wrong). What was not asked or not judged yet is not among it.
with replies as (
    select
        predictions.run_id,
        predictions.model,
        predictions.suite,
        predictions.item_id,
        predictions.sample,
        predictions.outcome,
        predictions.error,
        predictions.is_result,
        judged.prediction_id is not null as is_judged,
        judged.outcome as judge_outcome,
        score,
        failed_step,
        extracted_answer,
        reason
    from predictions
    semi join plans using (run_id, model, suite, item_id)
    left join judged
        on judged.prediction_id = predictions.prediction_id
        and judged.run_id = predictions.run_id
        and judged.model = predictions.model
        and judged.judge = $judge
        and judged.judge_version = $judge_version
    where predictions.run_id = $run_id and predictions.model = $model
)
select
    replies.run_id,
    replies.model,
    case when not is_result then 'no answer' when score is null then 'no verdict' else 'wrong' end as went,
    replies.suite,
    category,
    replies.item_id,
    replies.sample,
    runs.samples,
    outcome,
    error,
    judge_outcome,
    score,
    failed_step,
    extracted_answer,
    reason
from replies
join runs using (run_id, model)
join benchmark_versions using (benchmark_version, suite)
join items using (suite, suite_version, item_id)
where replies.sample < runs.samples
    and (not is_result or is_judged and score is null or score < 1)
order by
    array_position(['no answer', 'no verdict', 'wrong'], went), replies.suite, category, replies.item_id, replies.sample
