-- Of the evaluations that a Dagster run opened, asked in or judged: how replies and verdicts ended and what they
-- cost, model by model, most failures first. $run_ids are its id, that of its first attempt, and those of its parts.
-- A reply does not say who launched it: if it $predicted, those to $models (NULL: to any) from $since to $until are taken
-- for its own. The tables hold what there was when it ended.
with touched as (
    select run_id, model from runs where list_contains($run_ids::varchar[], run_id)
    union
    select run_id, model from judged where list_contains($run_ids::varchar[], launch)
    union
    select run_id, model from predictions where $predicted and finished_at between $since::timestamp and $until::timestamp
),
evaluations as (
    select run_id, model, planned * samples as planned
    from runs
    semi join touched using (run_id, model)
    where $models is null or list_contains($models::varchar[], model)
),
planned as (
    select model, sum(planned)::bigint as planned
    from evaluations
    group by model
),
endings as (
    select model, 'predicted' as stage, outcome, count(*) as times, count(*) filter (not is_result) as failures
    from predictions
    semi join evaluations using (run_id, model)
    group by model, outcome
    union all
    select model, 'judged' as stage, outcome, count(*) as times, count(*) filter (score is null) as failures
    from judged
    semi join evaluations using (run_id, model)
    group by model, outcome
),
told as (
    select
        model,
        string_agg(outcome || ' ' || times, ', ' order by outcome <> 'ok', times desc, outcome)
            filter (stage = 'predicted') as predicted,
        string_agg(outcome || ' ' || times, ', ' order by outcome <> 'ok', times desc, outcome)
            filter (stage = 'judged') as judged,
        sum(failures) as failures
    from endings
    group by model
),
-- What was carried over from another run was paid there.
costs as (
    select
        model,
        cost_usd,
        cost_usd is null and (is_result or input_tokens is not null or output_tokens is not null) as unknown
    from predictions
    semi join evaluations using (run_id, model)
    where carried_from is null
    union all
    select model, cost_usd, cost_usd is null and attempts > 0 as unknown
    from judged
    semi join evaluations using (run_id, model)
    where carried_from is null
),
paid as (
    select model, sum(cost_usd) as cost_usd, count(*) filter (unknown) as costs_unknown
    from costs
    group by model
)
select
    model,
    planned,
    coalesce(predicted, '') as predicted,
    coalesce(judged, '') as judged,
    coalesce(cost_usd, 0) as cost_usd,
    coalesce(costs_unknown, 0) as costs_unknown
from planned
left join told using (model)
left join paid using (model)
order by failures desc nulls last, model
