-- Launches in which replies or verdicts are missing, the newest first, and what is missing in all their runs together:
-- of each run, for the judge who has got farthest.
with standing as (
    select run_id, model, planned, answered, failed, judged
    from metrics
    where slice = 'all'
    qualify row_number() over (partition by run_id, model order by judged desc, judged_at desc, judge) = 1
)
select
    run_id,
    min(model) as model,
    count(*) as models,
    any_value(experiment) as experiment,
    max(opened_at) as opened_at,
    sum(standing.planned - answered - failed)::bigint as not_asked,
    sum(failed)::bigint as failed,
    sum(answered - judged)::bigint as not_judged
from standing
join runs using (run_id, model)
where judged < standing.planned
group by run_id
order by opened_at desc, run_id
