-- Usable replies of each model's latest run that no judge has scored.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
),
verdicts as (
    select prediction_id, max(score) as score, any_value(reason) as reason from judged group by prediction_id
)
select model, left(run_id, 8) as run, suite, item_id, coalesce(verdicts.reason, 'not judged yet') as reason
from latest
join predictions using (run_id, model)
left join verdicts using (prediction_id)
where is_result and verdicts.score is null
order by model, suite, item_id
