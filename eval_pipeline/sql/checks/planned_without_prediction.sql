-- Planned items of each model's latest run that have no usable reply.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
)
select model, left(run_id, 8) as run, suite, item_id, coalesce(outcome, 'not asked') as outcome, error
from latest
join plans using (run_id, model)
left join predictions using (run_id, model, suite, item_id)
where is_result is not true
order by model, suite, item_id
