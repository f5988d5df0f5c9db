-- At which step answers in code failed first in one run, as one version of a judge has it; no row if there is no code.
select * exclude (run_id, judge, judge_version)
from run_steps
where run_id = $run_id and model = $model and judge = $judge and judge_version = $judge_version
