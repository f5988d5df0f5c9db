-- Every reply to one item in one run, or why there is none.
select *
from predictions
where run_id = $run_id and model = $model and suite = $suite and item_id = $item_id
order by sample
