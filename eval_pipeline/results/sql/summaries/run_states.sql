-- Every run as it stands, the newest first: how much of it is answered, judged and right, what it cost, and what is left
-- to judge for $judges. Of $run_id, and of models whose id has $model in it, unless they are NULL; with $latest the newest
-- of each model and experiment only. $at_work are the ids of launches whose process is alive.
with standing as (
    select
        run_id, model, judge, judge_version, answered, failed, judged, undecided, correct, accuracy, accuracy_low,
        accuracy_high, complete, incomplete_because, cost_usd, cost_known_usd, costs_unknown, cost_estimated,
        judge_cost_usd, judged_at
    from run_standing
    where stands
),
lacking as (select run_id, model, to_judge from left_to_do($judges::varchar[])),
failures as (
    select run_id, model, map_from_entries(list((outcome, times) order by times desc, outcome)) as failures
    from (select run_id, model, outcome, count(*) as times from predictions where not is_result group by all)
    group by all
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
    coalesce(to_judge, 0) as to_judge,
    incomplete_because,
    cost_usd,
    cost_known_usd,
    coalesce(costs_unknown, 0) as costs_unknown,
    cost_estimated,
    judge_cost_usd,
    judged_at,
    json_exists(parameters, '$.closed') as closed,
    (run_id, model) in (select (run_id, model) from runs_at_work($at_work::varchar[])) as at_work
from runs
left join standing using (run_id, model)
left join lacking using (run_id, model)
left join failures using (run_id, model)
left join versions using (benchmark_version)
where ($run_id is null or run_id = $run_id) and ($model is null or contains(lower(model), lower($model)))
qualify not $latest
    or row_number() over (partition by model, experiment order by opened_at desc, run_id) = 1
order by opened_at desc, run_id, model
