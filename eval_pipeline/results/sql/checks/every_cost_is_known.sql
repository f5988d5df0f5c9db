-- Latest runs with replies whose cost nobody knows.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
)
select distinct model, left(run_id, 8) as run, costs_unknown, answered + failed as replies, cost_known_usd
from latest
join metrics using (run_id, model)
where slice = 'all' and costs_unknown > 0
order by model, run
