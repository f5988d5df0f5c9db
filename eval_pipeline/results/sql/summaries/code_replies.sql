-- Every reply to a coding task in the run $run_id of $model, with the steps that it was taken through by the judge
-- who was last at work on it; the first suite, item and sample first.
with latest as (
    select prediction_id, judge, judge_version, score, reason
    from judged
    where run_id = $run_id and model = $model
    qualify row_number() over (partition by prediction_id order by finished_at desc, judge, judge_version) = 1
),
taken as (
    select
        prediction_id,
        list({step: step, status: status, reason: reason, output: output} order by position) as steps
    from steps
    semi join latest using (prediction_id, judge, judge_version)
    where run_id = $run_id and model = $model
    group by prediction_id
)
select
    benchmark_version,
    suite,
    item_id,
    sample,
    answer,
    outcome,
    score,
    coalesce(reason, '') as reason,
    coalesce(steps, []) as steps
from predictions
join runs using (run_id, model)
join benchmark_versions using (benchmark_version, suite)
left join latest using (prediction_id)
left join taken using (prediction_id)
where run_id = $run_id and model = $model and kind = 'coding' and answer is not null
order by suite, item_id, sample
