-- entries -> leaderboard_slices: the same numbers over each suite, and over each of its categories.
insert into leaderboard_slices by name
with scored as (
    select entry, suite, category, score
    from entry_scores
    join exam using (item)
),
sizes as (
    select entry, suite, category, count(*) as items, avg(score::decimal(18, 12)) as accuracy
    from scored
    group by grouping sets ((entry, suite), (entry, suite, category))
),
errors as (
    select
        sizes.entry,
        sizes.suite,
        sizes.category,
        items,
        accuracy,
        case when items > 1 then
            sqrt(sum(((score - accuracy) ** 2)::decimal(24, 18))::double / (items - 1) / items) end as standard_error
    from sizes
    join scored on scored.entry = sizes.entry
        and scored.suite = sizes.suite
        and (sizes.category is null or scored.category = sizes.category)
    group by sizes.entry, sizes.suite, sizes.category, items, accuracy
),
effective as (
    select
        *,
        items * runs * samples as scores,
        effective_scores(items, scores, accuracy, standard_error) as scores_effective,
        if(scores = items, round(accuracy * items, 6), accuracy * scores_effective) as hits
    from errors
    join entries using (entry)
)
select
    model,
    experiment,
    scope,
    judge,
    judge_version,
    is_official,
    suite,
    category,
    items as judged,
    accuracy,
    wilson_low(hits, scores_effective) as accuracy_low,
    wilson_high(hits, scores_effective) as accuracy_high
from effective
order by entry, suite, category nulls first
