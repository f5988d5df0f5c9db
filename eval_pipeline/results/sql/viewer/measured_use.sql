-- Tokens and costs by model, as far as they are known; models beyond the $most with the most replies are one.
with names as (
    select model, if(row_number() over (order by count(*) desc, model) <= $most, model, 'other') as name
    from predictions
    group by model
),
asked as (
    select
        run_id, model,
        sum(input_tokens) as input_tokens,
        sum(output_tokens) as output_tokens,
        sum(cost_usd) as usd,
        count(*) filter (
            cost_usd is null and (is_result or input_tokens is not null or output_tokens is not null)) as unknown
    from predictions
    group by run_id, model
),
graded as (
    select run_id, model, sum(cost_usd) as usd from judged group by run_id, model
)
select
    name as model,
    simulated,
    coalesce(sum(input_tokens), 0) as input_tokens,
    coalesce(sum(output_tokens), 0) as output_tokens,
    coalesce(sum(asked.usd), 0) as asking_usd,
    coalesce(sum(graded.usd), 0) as judging_usd,
    sum(unknown) as costs_unknown
from asked
join runs using (run_id, model)
join names using (model)
left join graded using (run_id, model)
group by all
order by all
