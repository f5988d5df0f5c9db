-- A model whose gateway the settings no longer have is not listed.
comment on column model_catalog.listed is 'Whether its gateway still listed it the last time it was asked, and was still in the settings at the last refresh.';
