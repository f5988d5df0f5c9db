-- The items of a run as they went, each with all its samples: right, partly, wrong, no verdict, no answer or not asked.
-- $show is all or one of: failed (anything but right), infrastructure (no answer, or no verdict for no fault of the
-- model's), disagreed (judges, or versions of one, say different things), truncated.
with run as (
    select run_id, model, samples, benchmark_version from runs where run_id = $run_id and model = $model
),
planned as (
    select suite, item_id, category, kind
    from plans
    semi join run using (run_id, model)
    join (select suite, suite_version from benchmark_versions semi join run using (benchmark_version)) as loaded
        using (suite)
    join items using (suite, suite_version, item_id)
),
verdicts as (
    select prediction_id, score, outcome as judge_outcome, failed_step, extracted_answer, reason
    from judged
    where run_id = $run_id and model = $model and judge = $judge and judge_version = $judge_version
),
opinions as (
    select suite, item_id, max(differing) as disagreed
    from (
        select suite, item_id, prediction_id, count(distinct score) > 1 as differing
        from judged
        where run_id = $run_id and model = $model and score is not null
        group by all
    )
    group by all
),
replies as (
    select
        suite,
        item_id,
        count(*) as samples,
        count(*) filter (is_result) as answered,
        count(score) as judged,
        avg(score) as score,
        bool_or(starts_with(outcome, 'truncated')) as truncated,
        bool_or(not is_result or (judge_outcome is not null and score is null and judge_outcome <> 'undecided'))
            as infrastructure,
        first(if(is_result, coalesce(failed_step, extracted_answer), outcome) order by sample) as told,
        first(coalesce(error, reason) order by sample) as reason,
        sum(cost_usd) as cost_usd,
        max(latency_s) as latency_s,
        first(outcome order by sample) as outcome
    from predictions
    left join verdicts using (prediction_id)
    where run_id = $run_id and model = $model
    group by all
),
went as (
    select
        suite,
        item_id,
        category,
        kind,
        case
            when answered is null then 'not asked'
            when answered = 0 then 'no answer'
            when judged = 0 then 'no verdict'
            when score = 1 then 'right'
            when score = 0 then 'wrong'
            else 'partly'
        end as went,
        score,
        outcome,
        coalesce(truncated, false) as truncated,
        coalesce(infrastructure, false) as infrastructure,
        coalesce(disagreed, false) as disagreed,
        told,
        reason,
        cost_usd,
        latency_s
    from planned
    left join replies using (suite, item_id)
    left join opinions using (suite, item_id)
)
select *, count(*) over () as found
from went
where case $show
    when 'failed' then went <> 'right'
    when 'infrastructure' then infrastructure
    when 'disagreed' then disagreed
    when 'truncated' then truncated
    else true
end
order by suite, category, item_id
limit $most
offset $skipped
