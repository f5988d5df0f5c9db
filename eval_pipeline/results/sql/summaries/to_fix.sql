-- Of each model, experiment and scope the latest run, if there is something left to do in it for $judges and nobody is
-- at it, the newest first. So a run of a part, of which only the latest counts, hides none of everything.
-- $at_work are the ids of launches whose process is alive.
with latest as (
    select run_id, model, experiment, opened_at
    from runs
    where not json_exists(parameters, '$.closed')
    qualify row_number() over (partition by model, experiment, scope order by opened_at desc, run_id) = 1
)
select run_id, model, experiment, opened_at
from latest
join left_to_do($judges::varchar[]) using (run_id, model)
anti join runs_at_work($at_work::varchar[]) using (run_id, model)
where not_asked + failed + to_judge > 0
order by opened_at desc, run_id, model
