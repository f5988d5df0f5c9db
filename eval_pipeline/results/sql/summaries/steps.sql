-- Of the runs on the leaderboard, at which step answers in code failed first; once, whoever judged the rest of a run.
select distinct * exclude (run_id, judge, judge_version)
from run_steps
semi join (from leaderboard where is_official) board using (run_id, model, judge, judge_version)
order by passed desc, model, experiment
