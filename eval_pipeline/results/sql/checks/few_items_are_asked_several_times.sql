-- Latest runs in which more than 20 % of the items had to be asked several times.
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
    count(*) filter (attempts > 1) as asked_again,
    asked_again / count(*) as share,
    max(attempts) as most_attempts
from latest
join predictions using (run_id, model)
where carried_from is null
group by run_id, model
having share > 0.2
order by share desc, model, run
