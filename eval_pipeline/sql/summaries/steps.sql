-- Of the runs on the leaderboard, at which step answers in code failed first.
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
    count(*) filter (failed_step = 'tests') as tests,
    sum(tests_passed) / nullif(sum(tests_total), 0) as tests_passed_share
from judged
semi join (from leaderboard where is_official) board using (run_id, model, judge, judge_version)
join runs using (run_id, model)
where judged.grader_version is not null and score is not null
group by all
order by passed desc, judged.model, runs.experiment
