-- The labels that are about a reply of the chosen runs.
from human_labels
where list_has_any(prediction_ids, (select list(prediction_id) from predictions semi join chosen using (run_id, model)))
