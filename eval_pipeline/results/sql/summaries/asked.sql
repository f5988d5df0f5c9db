-- How asking went: of each of $models the run last worked at under $experiment, or the one that $continued names, as a
-- whole.
with worked_at as (
    select run_id, model, max(finished_at) as moment
    from predictions
    where list_contains($models, model) and carried_from is null
    group by run_id, model
),
current_runs as (
    select model, run_id
    from runs
    left join worked_at using (run_id, model)
    where list_contains($models, model)
        and if(
            len($continued) = 0,
            experiment = $experiment,
            list_bool_or([starts_with(run_id, begins) for begins in $continued]))
    qualify row_number() over (partition by model order by greatest(opened_at, moment) desc, run_id) = 1
),
ended as (
    select
        model,
        outcome,
        count(*) as replies,
        array_to_string(min(suite || '/' || item_id, 3) filter (outcome <> 'ok'), ', ') as examples,
        mode(said order by said) filter (outcome <> 'ok') as error
    from (
        select model, outcome, suite, item_id, left(coalesce(error, finish_reason), 200) as said
        from predictions
        join current_runs using (run_id, model)
    )
    group by model, outcome
),
outcomes as (
    select
        model,
        map_from_entries(list((outcome, replies) order by outcome)) as outcomes,
        list({outcome: outcome, replies: replies, examples: examples, error: coalesce(error, '')}
            order by replies desc, outcome) filter (outcome <> 'ok') as failures
    from ended
    group by model
)
select
    model,
    left(run_id, 8) as run,
    planned,
    answered,
    failed,
    cost_usd,
    cost_known_usd,
    costs_unknown,
    input_tokens,
    output_tokens,
    latency_p50_s,
    latency_p95_s,
    first_token_p50_s,
    output_tokens_per_s as tokens_per_s,
    coalesce(outcomes, map {}) as outcomes,
    coalesce(failures, []) as failures
from current_runs
-- One row per judge, of which those numbers are the same that no judge has a part in.
join (select distinct on (run_id, model) * from metrics where slice = 'all') using (run_id, model)
left join outcomes using (model)
order by model
