-- Launches in which something is left to do for $judges, the newest first, and what that is in all their runs together.
-- Runs at which a launch is at work whose id is among $at_work are left out.
select
    run_id,
    min(model) as model,
    count(*) as models,
    any_value(experiment) as experiment,
    max(opened_at) as opened_at,
    sum(not_asked)::bigint as not_asked,
    sum(failed)::bigint as failed,
    sum(to_judge)::bigint as not_judged
from left_to_do($judges::varchar[])
join runs using (run_id, model)
anti join runs_at_work($at_work::varchar[]) using (run_id, model)
where not_asked + failed + to_judge > 0 and not json_exists(parameters, '$.closed')
group by run_id
order by opened_at desc, run_id
