-- The models of the chosen runs.
from model_catalog
semi join chosen using (model)
