-- The replies of some models. A reply that takes the place of another one has an id of its own.
select model, count(*), bit_xor(hash(run_id, prediction_id))
from predictions
where list_contains($models, model)
group by model
order by model
