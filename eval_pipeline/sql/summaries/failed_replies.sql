-- What went wrong in runs, reply by reply: asked in vain (no answer), judged in vain (no verdict), or scored below 1 by
-- the judge that stands for the run (wrong). What was not asked or not judged yet is not among it. The runs are named by
-- $run_ids and, in the same order, $models. Of each run and way to go wrong the first $most, or all if that is NULL;
-- alike is how many there are.
with meant as (
    select unnest($run_ids::varchar[]) as run_id, unnest($models::varchar[]) as model
),
standing as (
    select run_id, model, judge, judge_version
    from run_standing
    semi join meant using (run_id, model)
    where stands
),
verdicts as (
    select
        run_id, model, prediction_id, outcome as judge_outcome, score, failed_step, extracted_answer, reason,
        true as is_judged
    from judged
    semi join standing using (run_id, model, judge, judge_version)
    where score is null or score < 1
),
replies as (
    select
        run_id,
        model,
        case when not is_result then 'no answer' when score is null then 'no verdict' else 'wrong' end as went,
        suite,
        item_id,
        sample,
        outcome,
        error,
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
)
select
    run_id,
    model,
    went,
    suite,
    category,
    item_id,
    sample,
    samples,
    outcome,
    error,
    judge_outcome,
    score,
    failed_step,
    extracted_answer,
    reason,
    count(*) over (partition by run_id, model, went) as alike
from replies
join runs using (run_id, model)
join benchmark_versions using (benchmark_version, suite)
join items using (suite, suite_version, item_id)
where sample < samples
qualify $most is null
    or row_number() over (partition by run_id, model, went order by suite, category, item_id, sample) <= $most
order by
    opened_at desc, run_id, model,
    array_position(['no answer', 'no verdict', 'wrong'], went), suite, category, item_id, sample
