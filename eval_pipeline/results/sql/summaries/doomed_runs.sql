-- What would go if the run $run_id of these $models were deleted, model by model. Costs are those that count in
-- budgets: what was carried over from another run was paid there, and an answer to the request of another program (its
-- hash has a colon) by whoever ran that. Other runs keep what they carried over from it.
with chosen as (
    select * from runs where run_id = $run_id and list_contains($models::varchar[], model)
),
replies as (
    select
        model,
        count(*) as predictions,
        count(*) filter (is_result) as answered,
        sum(cost_usd) filter (carried_from is null and not contains(request_hash, ':')) as usd,
        count(*) filter (
            carried_from is null
            and not contains(request_hash, ':')
            and cost_usd is null
            and (is_result or input_tokens is not null or output_tokens is not null)) as costs_unknown
    from predictions
    semi join chosen using (run_id, model)
    group by model
),
verdicts as (
    select
        model,
        count(*) as judged,
        list(distinct judge order by judge) as judges,
        sum(cost_usd) filter (carried_from is null) as usd,
        count(*) filter (carried_from is null and cost_usd is null and attempts > 0) as costs_unknown
    from judged
    semi join chosen using (run_id, model)
    group by model
),
repetitions as (
    select model, count(*) as rejudged, sum(cost_usd) as usd
    from rejudged
    semi join chosen using (run_id, model)
    group by model
),
explained as (
    select model, count(*) as diagnosed, sum(cost_usd) filter (carried_from is null) as usd
    from diagnoses
    semi join chosen using (run_id, model)
    group by model
),
said as (
    select model, count(classification) as classified
    from reclassified
    semi join chosen using (run_id, model)
    group by model
),
ranked as (
    select distinct model from leaderboard where list_contains(run_ids, $run_id)
),
heirs as (
    select model, list(distinct run_id order by run_id) as carried_to
    from predictions
    where carried_from = $run_id
    group by model
)
select
    run_id,
    model,
    experiment,
    simulated,
    opened_at,
    planned * samples as planned,
    coalesce(predictions, 0) as predictions,
    coalesce(answered, 0) as answered,
    coalesce(judged, 0) as judged,
    coalesce(rejudged, 0) as rejudged,
    coalesce(diagnosed, 0) as diagnosed,
    coalesce(classified, 0) as classified,
    coalesce(replies.usd, 0) + coalesce(verdicts.usd, 0) + coalesce(repetitions.usd, 0) + coalesce(explained.usd, 0)
        as cost_usd,
    coalesce(replies.costs_unknown, 0) + coalesce(verdicts.costs_unknown, 0) as costs_unknown,
    ranked.model is not null as on_leaderboard,
    coalesce(carried_to, []) as carried_to,
    coalesce(judges, []) as judges
from chosen
left join replies using (model)
left join verdicts using (model)
left join repetitions using (model)
left join explained using (model)
left join said using (model)
left join ranked using (model)
left join heirs using (model)
order by model
