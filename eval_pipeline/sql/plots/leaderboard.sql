-- What is plotted of the leaderboard: that of the judge who graded the most models, the last one at work.
with judges as (
    select judge, judge_version
    from leaderboard
    group by judge, judge_version
    qualify row_number() over (order by count(*) desc, max(opened_at) desc, judge, judge_version) = 1
)
select
    model, experiment, scope, accuracy, accuracy_low, accuracy_high, rank_low, rank_high, ties, judged,
    cost_usd, simulated, judge, judge_version, run_id
from leaderboard
join judges using (judge, judge_version)
order by experiment, scope, rank, model
