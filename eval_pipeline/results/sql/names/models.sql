-- Every model that a gateway lists.
select model from model_catalog where listed order by model
