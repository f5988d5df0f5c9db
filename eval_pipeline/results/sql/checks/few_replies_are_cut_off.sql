-- Latest runs in which more than 5 % of the replies reached the token limit, thinking included.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
)
select
    model,
    left(run_id, 8) as run,
    count(*) as replies,
    count(*) filter (outcome = 'truncated') as truncated,
    count(*) filter (outcome = 'truncated_thinking') as truncated_thinking,
    (truncated + truncated_thinking) / count(*) as share,
    max(output_tokens) as most_output_tokens
from latest
join predictions using (run_id, model)
where is_result
group by run_id, model
having share > 0.05
order by share desc, model, run
