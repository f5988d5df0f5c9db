-- The latest run of each model and experiment if it lacks replies or verdicts, the newest first.
with latest as (
    select run_id, model, experiment, opened_at
    from runs
    qualify row_number() over (partition by model, experiment order by opened_at desc, run_id) = 1
)
select run_id, model, experiment, opened_at
from latest
join metrics using (run_id, model, experiment)
where slice = 'all'
group by all
having not bool_or(complete)
order by opened_at desc, run_id, model
