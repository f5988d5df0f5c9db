-- The replies of the run $run_id of $model to the suite $suite, each with the verdict of one judge: of $judge if it is
-- given, and of its versions, or of all judges, the one that has scored the most, then the one last at work.
with by_judge as (
    select judge, judge_version
    from judged
    where run_id = $run_id and model = $model and suite = $suite and ($judge is null or judge = $judge)
    group by judge, judge_version
    order by count(score) desc, max(finished_at) desc, judge, judge_version
    limit 1
),
verdicts as (
    select *
    from judged
    semi join by_judge using (judge, judge_version)
    where run_id = $run_id and model = $model and suite = $suite
)
select
    predictions.item_id, predictions.outcome, predictions.answer, error, predictions.input_tokens, predictions.output_tokens,
    reasoning_tokens, cached_tokens, first_token_s, generation_s, generation_id, model_reported,
    predictions.finished_at, judge, verdicts.outcome as judge_outcome, score, reason, extracted_answer, confidence,
    raw_reply, verdicts.latency_s as judge_latency_s, verdicts.finished_at as judged_at, items.answer as reference
from predictions
join runs using (run_id, model)
join benchmark_versions using (benchmark_version, suite)
join items using (suite, suite_version, item_id)
left join verdicts using (prediction_id, run_id, model)
where run_id = $run_id and model = $model and predictions.suite = $suite
