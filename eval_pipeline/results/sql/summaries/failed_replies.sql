-- What went wrong in runs, reply by reply. The runs are named by $run_ids and, in the same order, $models. Of each run and
-- way to go wrong the first $most, or all if that is NULL; alike is how many there are.
select
    failed.*,
    coalesce(analyst_simulated, false) as analyst_simulated,
    count(*) over (partition by run_id, model, went) as alike
from failed_replies($run_ids::varchar[], $models::varchar[]) failed
join (select run_id, model, opened_at from runs) opened using (run_id, model)
left join (select model as analyst, simulated as analyst_simulated from model_catalog) catalog using (analyst)
qualify $most is null
    or row_number() over (partition by run_id, model, went order by suite, category, item_id, sample) <= $most
order by
    opened_at desc, run_id, model,
    array_position(['no answer', 'no verdict', 'wrong'], went), suite, category, item_id, sample
