-- The items that one run sets out to ask.
select suite, item_id
from plans
where run_id = $run_id and model = $model
