-- What is plotted of the leaderboard: of the judge who graded the most models, and under its official version.
with judges as (
    select judge, judge_version
    from leaderboard
    where is_official
    group by judge, judge_version
    qualify row_number() over (order by count(distinct model) desc, max(opened_at) desc, judge) = 1
)
select
    model, experiment, scope, accuracy, accuracy_low, accuracy_high, rank_low, rank_high, ties, judged,
    cost_usd, simulated, judge, judge_version, run_id
from leaderboard
join judges using (judge, judge_version)
order by experiment, scope, rank, model
