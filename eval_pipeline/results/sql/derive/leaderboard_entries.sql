-- entries, comparisons -> leaderboard_entries, which the view leaderboard shows with the models' names.
insert into leaderboard_entries by name
with sizes as (
    select entry, count(*) as items, avg(score::decimal(18, 12)) as accuracy
    from entry_scores
    group by entry
),
errors as (
    select
        entry,
        items,
        accuracy,
        case when items > 1 then
            sqrt(sum(((score - accuracy) ** 2)::decimal(24, 18))::double / (items - 1) / items) end as standard_error
    from entry_scores
    join sizes using (entry)
    group by entry, items, accuracy
),
-- As in metrics: several replies to an item are worth more than one, and at most as much as so many.
effective as (
    select
        *,
        items * runs * samples as scores,
        effective_scores(items, scores, accuracy, standard_error) as scores_effective,
        if(scores = items, round(accuracy * items, 6), accuracy * scores_effective) as hits
    from errors
    join entries using (entry)
),
-- Suites may have categories of the same name.
categories as (
    select entry, map_from_entries(list((name, accuracy) order by name)) as category_accuracy
    from (
        select
            entry,
            if((select count(*) from benchmark_versions where is_published) > 1, suite || '/', '') || category as name,
            avg(score::decimal(18, 12)) as accuracy
        from entry_scores
        join exam using (item)
        group by entry, suite, category
    )
    group by entry
),
text as (
    select entry, avg(score::decimal(18, 12)) as text_accuracy
    from entry_scores
    join exam using (item)
    where input = 'text'
    group by entry
),
spent as (
    select
        entry,
        avg((cost_usd / metrics.samples)::decimal(24, 15)) as cost_usd,
        bool_or(cost_estimated) as cost_estimated,
        avg(latency_p50_s::decimal(18, 9)) as latency_p50_s,
        any_value(calibration_error) filter (run_id = run_ids[1]) as calibration_error
    from metrics
    join entry_runs using (run_id, model, experiment, judge, judge_version)
    join entries using (model, experiment, judge, judge_version)
    where slice = 'all'
    group by entry
),
timed as (
    select
        entry,
        avg(latency_s::decimal(18, 9)) as mean_latency_s,
        avg(generation_s::decimal(18, 9)) as mean_generation_s
    from predictions
    join entry_runs using (run_id, model)
    join entries using (model, experiment, judge, judge_version)
    group by entry
),
-- What is not on the board: runs that are not complete, and replies that never came. A run that this
-- judge has not seen is complete if it is for another one.
left_out as (
    select
        entry,
        count(*) filter (not complete) as incomplete_runs,
        sum(failed)::bigint as failed_replies
    from (
        select entry, complete, failed
        from metrics
        join entries using (model, experiment)
        where slice = 'all'
            and metrics.scope <> 'filtered'
            and benchmark_version in (select benchmark_version from benchmark_versions where is_published)
        qualify row_number() over (
            partition by entry, run_id
            order by
                metrics.judge = entries.judge and metrics.judge_version = entries.judge_version desc nulls last,
                complete desc) = 1
    )
    group by entry
)
select
    rank() over (
        partition by judge, judge_version, experiment, scope order by round(accuracy, 12) desc) as rank,
    rank_low,
    rank_high,
    ties,
    model,
    experiment,
    scope,
    judge,
    judge_version,
    is_official,
    runs,
    samples,
    accuracy,
    wilson_low(hits, scores_effective) as accuracy_low,
    wilson_high(hits, scores_effective) as accuracy_high,
    standard_deviation,
    text_accuracy,
    category_accuracy,
    items as judged,
    incomplete_runs,
    failed_replies,
    calibration_error,
    cost_usd,
    cost_estimated,
    latency_p50_s,
    mean_latency_s,
    mean_generation_s,
    run_ids[1] as run_id,
    run_ids,
    benchmark_version,
    simulated,
    opened_at
from effective
join ranks using (entry)
join spent using (entry)
join left_out using (entry)
left join text using (entry)
left join categories using (entry)
left join timed using (entry)
cross join (select distinct benchmark_version from benchmark_versions where is_published)
order by entry
