-- How one run was set up.
select run_id, model, experiment, benchmark_version, scope, samples, simulated, opened_at, parameters
from runs
where run_id = $run_id and model = $model
