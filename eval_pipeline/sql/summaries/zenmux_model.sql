-- The model $model as the catalog has it; no row if nobody ever listed it.
select provider, context_length, max_output_tokens, streaming
from model_catalog
where model = $model
