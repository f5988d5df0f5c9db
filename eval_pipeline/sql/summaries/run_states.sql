-- Every run as it stands, the newest first: how much of it is answered, judged and right, and what it cost. Of a run's
-- judges the official version counts, else the one that has scored the most. Of $run_id, and of models whose id has $model
-- in it, unless they are NULL; with $latest the newest of each model and experiment only. $at_work are the ids of launches
-- whose process is alive: what they opened or judged is at work, and the newest run of what they set out to ask.
with official as (
    select distinct judge, judge_version, true as is_official
    from leaderboard_entries
    where is_official
),
counted as (
    select
        run_id, model, judge, judge_version, answered, failed, judged, correct, accuracy, accuracy_low, accuracy_high,
        complete, incomplete_because, cost_usd, cost_known_usd, costs_unknown, cost_estimated, judge_cost_usd, judged_at
    from metrics
    left join official using (judge, judge_version)
    where slice = 'all'
    qualify row_number() over (
        partition by run_id, model
        order by is_official nulls last, judged desc, judged_at desc nulls last, judge, judge_version) = 1
),
failures as (
    select run_id, model, map_from_entries(list((outcome, times) order by times desc, outcome)) as failures
    from (select run_id, model, outcome, count(*) as times from predictions where not is_result group by all)
    group by all
),
undecided as (
    select run_id, model, judge, judge_version, count(*) as undecided
    from judged
    where score is null and outcome = 'undecided'
    group by all
),
at_work as (
    select run_id, model from runs where list_contains($at_work::varchar[], run_id)
    union
    select run_id, model from judged where list_contains($at_work::varchar[], launch)
    union
    select arg_max(run_id, opened_at), model
    from runs
    semi join (from attempts where list_contains($at_work::varchar[], run_id)) launched using (model, experiment)
    group by model, experiment
),
versions as (
    select benchmark_version, any_value(name) as version_name, bool_or(is_current) as is_current
    from benchmark_versions
    group by benchmark_version
)
select
    run_id,
    model,
    experiment,
    simulated,
    scope,
    opened_at,
    benchmark_version,
    version_name,
    coalesce(is_current, false) as is_current,
    planned as items,
    samples,
    planned * samples as planned,
    coalesce(answered, 0) as answered,
    coalesce(failed, 0) as failed,
    coalesce(failures, map {}) as failures,
    judge,
    judge_version,
    coalesce(judged, 0) as judged,
    coalesce(undecided, 0) as undecided,
    correct,
    accuracy,
    accuracy_low,
    accuracy_high,
    coalesce(complete, false) as complete,
    incomplete_because,
    cost_usd,
    cost_known_usd,
    coalesce(costs_unknown, 0) as costs_unknown,
    cost_estimated,
    judge_cost_usd,
    judged_at,
    (run_id, model) in (select (run_id, model) from at_work) as at_work
from runs
left join counted using (run_id, model)
left join failures using (run_id, model)
left join undecided using (run_id, model, judge, judge_version)
left join versions using (benchmark_version)
where ($run_id is null or run_id = $run_id) and ($model is null or contains(lower(model), lower($model)))
qualify not $latest
    or row_number() over (partition by model, experiment order by opened_at desc, run_id) = 1
order by opened_at desc, run_id, model
