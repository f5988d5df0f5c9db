-- Runs whose id begins so, the newest first; all of them if $begins is empty.
select run_id, model, experiment, opened_at
from runs
where starts_with(run_id, $begins) and ($model is null or model = $model)
order by opened_at desc, run_id, model
