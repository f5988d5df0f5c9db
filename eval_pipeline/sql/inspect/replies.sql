-- The replies of one run to some of its items.
select *
from predictions
where run_id = $run_id and model = $model
    and (suite, item_id) in (select (unnest($suites), unnest($items)))
order by sample
