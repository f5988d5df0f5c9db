-- Planned replies of each model's latest run that are not there or not usable.
with latest as (
    select run_id, model, samples
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
)
select model, left(run_id, 8) as run, suite, item_id, sample, coalesce(outcome, 'not asked') as outcome, error
from (select run_id, model, suite, item_id, unnest(range(samples)) as sample from latest join plans using (run_id, model))
left join predictions using (run_id, model, suite, item_id, sample)
where is_result is not true
order by model, suite, item_id, sample
