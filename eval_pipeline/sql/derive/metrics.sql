-- predictions, judged -> metrics: one row per run, judge and slice.
-- Sums are taken over decimals, or in order: sums of doubles depend on the order in which threads
-- happen to add them, and the same journal must give the same rows.
insert into metrics
with graded as (
    select
        runs.run_id,
        runs.model,
        verdicts.judge,
        plans.suite,
        plans.item_id,
        items.category,
        if(items.image is null, 'text', 'image') as input,
        predictions.is_result,
        predictions.outcome,
        predictions.input_tokens,
        predictions.output_tokens,
        predictions.reasoning_tokens,
        try_cast(predictions.cost_usd as decimal(24, 15)) as cost_usd,
        predictions.cost_estimated,
        predictions.latency_s,
        predictions.first_token_s,
        judged.score::decimal(18, 12) as score,
        judged.confidence::decimal(18, 12) as confidence,
        try_cast(judged.cost_usd as decimal(24, 15)) as judge_cost_usd,
        judged.finished_at as judged_at
    from runs
    join benchmark_versions versions using (benchmark_version)
    join plans on plans.run_id = runs.run_id and plans.model = runs.model and plans.suite = versions.suite
    join items on items.suite = plans.suite and items.suite_version = versions.suite_version
        and items.item_id = plans.item_id
    left join (select distinct run_id, model, judge from judged) verdicts
        on verdicts.run_id = runs.run_id and verdicts.model = runs.model
    left join predictions on predictions.run_id = runs.run_id and predictions.model = runs.model
        and predictions.suite = plans.suite and predictions.item_id = plans.item_id
    left join judged on judged.prediction_id = predictions.prediction_id and judged.judge = verdicts.judge
        and judged.run_id = runs.run_id and judged.model = runs.model
),
sliced as (
    select 'all' as slice, null as in_suite, null as in_category, null as of_input, * from graded
    union all
    select 'suite', suite, null, null, * from graded
    union all
    select 'category', suite, category, null, * from graded
    union all
    select 'input', null, null, input, * from graded
),
binned as (
    select
        run_id, model, judge, slice, in_suite, in_category, of_input,
        score,
        confidence,
        count(*) over everything as items,
        -- Bins of 100 in order of confidence; what is left over belongs to the last bin.
        least((row_number() over in_order - 1) // 100, count(*) over everything // 100 - 1) as bin
    from sliced
    where score is not null and confidence is not null
    window
        everything as (partition by run_id, model, judge, slice, in_suite, in_category, of_input),
        in_order as (
            partition by run_id, model, judge, slice, in_suite, in_category, of_input
            order by confidence, suite, item_id)
),
bins as (
    select
        run_id, model, judge, slice, in_suite, in_category, of_input, items, bin,
        count(*) as size,
        avg(confidence) - avg(score) as overconfidence
    from binned
    where items >= 100
    group by all
),
calibration as (
    select
        run_id, model, judge, slice, in_suite, in_category, of_input,
        sqrt(sum(size / items * overconfidence ** 2 order by bin)) as calibration_error,
        sqrt(coalesce(
            sum(size / items * overconfidence ** 2 order by bin) filter (bin < items // 100 - 1), 0))
            as calibration_error_last_bin_dropped
    from bins
    group by all
),
counted as (
    select
        run_id, model, judge, slice, in_suite, in_category, of_input,
        count(*) as planned,
        count(*) filter (is_result) as answered,
        count(*) filter (not is_result) as failed,
        count(score) as scored,
        sum(score) as correct,
        avg(score) as accuracy,
        count(confidence) filter (score is not null) as with_confidence,
        avg(confidence) filter (score is not null) as mean_confidence,
        sum(input_tokens) as input_tokens,
        sum(output_tokens) as output_tokens,
        sum(reasoning_tokens) as reasoning_tokens,
        sum(cost_usd) as cost_usd,
        bool_or(cost_estimated) filter (cost_usd is not null) as cost_estimated,
        sum(judge_cost_usd) as judge_cost_usd,
        quantile_cont(latency_s, 0.5) as latency_p50_s,
        quantile_cont(latency_s, 0.95) as latency_p95_s,
        quantile_cont(first_token_s, 0.5) as first_token_p50_s,
        median(output_tokens / nullif(latency_s - first_token_s, 0))
            as output_tokens_per_s,
        max(judged_at) as judged_at,
        list_sort(list(distinct outcome) filter (not is_result)) as failures
    from sliced
    group by all
),
whole as (
    select
        run_id, model, judge,
        planned = scored as complete,
        concat_ws(', ',
            case when planned > answered + failed then planned - answered - failed || ' not asked' end,
            case when failed > 0 then failed || ' failed (' || array_to_string(failures, ', ') || ')' end,
            case when answered > scored then answered - scored || ' not judged' end) as lacking
    from counted
    where slice = 'all'
)
select
    counted.run_id,
    counted.model,
    runs.experiment,
    runs.benchmark_version,
    runs.scope,
    runs.simulated,
    counted.judge,
    counted.slice,
    counted.in_suite,
    counted.in_category,
    counted.of_input,
    counted.planned,
    answered,
    failed,
    scored,
    scored / counted.planned,
    whole.complete,
    nullif(whole.lacking, ''),
    correct,
    accuracy,
    wilson_low(correct::double, scored),
    wilson_high(correct::double, scored),
    wald_half_width(accuracy, scored),
    coalesce(correct, 0) / counted.planned,
    (coalesce(correct, 0) + counted.planned - scored) / counted.planned,
    with_confidence,
    mean_confidence,
    calibration_error,
    calibration_error_last_bin_dropped,
    input_tokens,
    output_tokens,
    reasoning_tokens,
    cost_usd,
    cost_estimated,
    judge_cost_usd,
    latency_p50_s,
    latency_p95_s,
    first_token_p50_s,
    output_tokens_per_s,
    judged_at
from counted
join runs using (run_id, model)
join whole on whole.run_id = counted.run_id and whole.model = counted.model
    and whole.judge is not distinct from counted.judge
left join calibration on calibration.run_id = counted.run_id and calibration.model = counted.model
    and calibration.judge = counted.judge and calibration.slice = counted.slice
    and calibration.in_suite is not distinct from counted.in_suite
    and calibration.in_category is not distinct from counted.in_category
    and calibration.of_input is not distinct from counted.of_input
order by counted.model, runs.opened_at, counted.judge, counted.slice, counted.in_suite, counted.in_category, counted.of_input
