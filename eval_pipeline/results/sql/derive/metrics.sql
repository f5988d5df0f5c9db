-- scores -> metrics: one row per run, judge, judge version and slice.
-- Sums are taken over decimals, or in order: sums of doubles depend on the order in which threads
-- happen to add them, and the same journal must give the same rows.
insert into metrics by name
with asked as (
    select
        coalesce(in_all, in_suite, in_category, in_input) as slice_id,
        count(*) filter (is_result) as answered,
        count(*) filter (not is_result) as failed,
        sum(input_tokens) as input_tokens,
        sum(output_tokens) as output_tokens,
        sum(reasoning_tokens) as reasoning_tokens,
        sum(try_cast(cost_usd as decimal(24, 15))) as cost_known_usd,
        count(*) filter (
            cost_usd is null and (is_result or input_tokens is not null or output_tokens is not null))
            as costs_unknown,
        bool_or(cost_estimated) filter (cost_usd is not null) as cost_estimated,
        quantile_cont(latency_s, 0.5) as latency_p50_s,
        quantile_cont(latency_s, 0.95) as latency_p95_s,
        quantile_cont(first_token_s, 0.5) as first_token_p50_s,
        median(output_tokens_per_s) as output_tokens_per_s,
        list_sort(list(distinct outcome) filter (not is_result)) as failures
    from predictions
    join gradings using (run_id, model)
    join exam using (benchmark_version, suite, item_id)
    join planned using (grading, item, cluster)
    where sample < samples
    group by grouping sets (in_all, in_suite, in_category, in_input)
),
graded as (
    select
        coalesce(in_all, in_suite, in_category, in_input) as slice_id,
        count(score) as judged,
        sum(score::decimal(18, 12))::double as correct,
        count(confidence) filter (score is not null) as with_confidence,
        avg(confidence::decimal(18, 12)) filter (score is not null) as mean_confidence,
        sum(cost_usd) as judge_cost_usd,
        max(finished_at) as judged_at,
        list_sort(list(distinct outcome) filter (score is null)) as undecided
    from verdicts
    group by grouping sets (in_all, in_suite, in_category, in_input)
),
sizes as (
    select coalesce(in_all, in_suite, in_category, in_input) as slice_id, count(*) as items
    from planned
    group by grouping sets (in_all, in_suite, in_category, in_input)
),
means as (
    select
        slice_id,
        sum(items)::bigint as items_judged,
        sum(mean_score * items order by mean_score, scored, passed) / sum(items) as accuracy
    from score_counts
    group by slice_id
),
counted as (
    select
        * replace (
            coalesce(answered, 0) as answered,
            coalesce(failed, 0) as failed,
            coalesce(costs_unknown, 0) as costs_unknown,
            coalesce(judged, 0) as judged,
            coalesce(with_confidence, 0) as with_confidence,
            coalesce(items_judged, 0) as items_judged),
        items * samples as planned
    from slices
    join gradings using (grading)
    join sizes using (slice_id)
    left join asked using (slice_id)
    left join graded using (slice_id)
    left join means using (slice_id)
),
errors as (
    select
        slice_id,
        sqrt(sum(score_counts.items * (mean_score - accuracy) ** 2 order by mean_score, scored, passed)
            / (items_judged - 1) / items_judged) as standard_error
    from score_counts
    join means using (slice_id)
    where items_judged > 1
    group by slice_id, items_judged
),
cluster_sums as (
    select
        coalesce(in_all, in_suite, in_category, in_input) as slice_id,
        cluster,
        count(*) as items,
        sum(mean_score::decimal(24, 18))::double as total
    from item_scores
    group by cluster, grouping sets (in_all, in_suite, in_category, in_input)
),
clustered as (
    select
        slice_id,
        count(*) as clusters,
        case when count(*) > 1 then
            sqrt(count(*) / (count(*) - 1) * sum(((total - cluster_sums.items * accuracy) ** 2)::decimal(38, 20)))
                / items_judged
        end as standard_error_clustered
    from cluster_sums
    join means using (slice_id)
    group by slice_id, items_judged
),
-- Several samples of an item are worth more than one item and at most as much as so many: as many
-- independent 0/1 scores as would have this standard error, but no more than there are scores. So the
-- interval is never wider than that of one 0/1 score per item, nor narrower than that of unrelated
-- ones. A fraction from a single reply counts as one score: cautious, and finite if all are equal.
effective as (
    select
        slice_id,
        effective_scores(items_judged, judged, accuracy, standard_error) as scores,
        -- The sum of single scores is exact where the mean times their number may be rounded.
        if(judged = items_judged, correct, accuracy * scores) as hits
    from counted
    left join errors using (slice_id)
),
whole as (
    select
        grading,
        planned = judged as complete,
        nullif(concat_ws(', ',
            case when planned > answered + failed then planned - answered - failed || ' not asked' end,
            case when failed > 0 then failed || ' failed (' || array_to_string(failures, ', ') || ')' end,
            case when answered > judged then answered - judged || ' not judged'
                || coalesce(' (' || nullif(array_to_string(undecided, ', '), '') || ')', '') end), '')
            as incomplete_because
    from counted
    where slice = 'all'
)
select
    runs.run_id,
    runs.model,
    runs.experiment,
    runs.benchmark_version,
    runs.scope,
    runs.simulated,
    judge,
    judge_version,
    slice,
    suite,
    category,
    input,
    items,
    runs.samples,
    counted.planned,
    answered,
    failed,
    judged,
    items_judged,
    judged / counted.planned as coverage,
    complete,
    incomplete_because,
    correct,
    accuracy,
    wilson_low(hits, scores) as accuracy_low,
    wilson_high(hits, scores) as accuracy_high,
    wald_half_width(accuracy, scores) as wald_half_width,
    standard_error,
    standard_error_clustered,
    coalesce(clusters, 0) as clusters,
    bootstrap_low,
    bootstrap_high,
    coalesce(correct, 0) / counted.planned as accuracy_if_missing_wrong,
    (coalesce(correct, 0) + counted.planned - judged) / counted.planned as accuracy_if_missing_right,
    with_confidence,
    mean_confidence,
    calibration_error,
    calibration_error_last_bin_dropped,
    expected_calibration_error,
    brier_score,
    input_tokens,
    output_tokens,
    reasoning_tokens,
    -- A part of the cost must not pass for the whole.
    case when costs_unknown = 0 then cost_known_usd end as cost_usd,
    cost_known_usd,
    costs_unknown,
    cost_estimated,
    judge_cost_usd,
    latency_p50_s,
    latency_p95_s,
    first_token_p50_s,
    output_tokens_per_s,
    judged_at
from counted
join runs using (run_id, model)
join whole using (grading)
join effective using (slice_id)
left join errors using (slice_id)
left join clustered using (slice_id)
left join bootstraps using (slice_id)
left join calibrations using (slice_id)
order by slice_id;

-- By far the largest of the temporary tables, and nothing after this needs it.
drop table verdicts
