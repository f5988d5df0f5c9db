-- The items that the runs of one launch cover, for those of $models.
select model, suite, item_id
from plans
where run_id = $run_id and list_contains($models::varchar[], model)
order by model, suite, item_id
