-- The wrong replies of earlier runs to the items that are wrong in $run_id, which is one of $run_ids; $models are the models of
-- the runs, in the same order. A reply that $run_id took over from an earlier run is not an earlier failure.
with failed as (
    select run_id, suite, item_id, sample, failed_step, error, coalesce(carried_from, run_id) as asked_in
    from failed_replies($run_ids::varchar[], $models::varchar[])
    where went = 'wrong'
),
wrong as (
    select suite, item_id, asked_in from failed where run_id = $run_id
)
select run_id, suite, item_id, failed_step, error
from failed
semi join wrong using (suite, item_id)
anti join wrong using (suite, item_id, asked_in)
where run_id <> $run_id
order by run_id, suite, item_id, sample
