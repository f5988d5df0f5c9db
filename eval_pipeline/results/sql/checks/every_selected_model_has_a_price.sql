-- Selected models that the gateway names no price for, be it 0.
select model, gateway, prompt_price, completion_price
from model_catalog
where selected and listed and (prompt_price is null or completion_price is null)
order by model
