-- An item of a run's plan: by its name, or by the hash that stands for a long one.
select suite, item_id
from plans
where run_id = $run_id
    and model = $model
    and (suite = $suite or md5(suite) = $suite_hash)
    and (item_id = $item_id or md5(item_id) = $item_hash)
limit 1
