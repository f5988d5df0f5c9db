-- The replies of one run to some of its items. The texts are wide: which rows these are is found out without them.
with chosen as materialized (
    select rowid as reply
    from predictions
    where run_id = $run_id and model = $model
        and (suite, item_id) in (select (unnest($suites), unnest($items)))
)
select * exclude (reply)
from predictions
join chosen on chosen.reply = predictions.rowid
order by sample
