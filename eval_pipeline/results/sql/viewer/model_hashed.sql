-- The model whose name is too long for a path, by its hash.
select model
from (select model from model_catalog union select model from runs)
where md5(model) = $hash
