-- At which step answers in code failed first in one run, as one version of a judge has it; no row if there is no code.
select
    judged.model,
    runs.experiment,
    runs.simulated,
    runs.scope,
    count(*) as graded,
    count(*) filter (score = 1) as passed,
    count(*) filter (failed_step = 'filesystem') as "filesystem",
    count(*) filter (failed_step = 'install') as install,
    count(*) filter (failed_step = 'deploy') as deploy,
    count(*) filter (failed_step = 'typecheck') as typecheck,
    count(*) filter (failed_step = 'lint') as lint,
    count(*) filter (failed_step = 'tests') as tests
from judged
join runs using (run_id, model)
where grader_version is not null
    and score is not null
    and run_id = $run_id
    and model = $model
    and judge = $judge
    and judge_version = $judge_version
group by all
