-- The accuracy of each model's latest run on the leaderboard, by category.
select
    model, experiment, scope,
    if(count(distinct suite) over () > 1, suite || '/', '') || category as category,
    metrics.accuracy,
    metrics.judged,
    simulated
from metrics
join (select run_id, model, judge, judge_version from plotted) using (run_id, model, judge, judge_version)
where slice = 'category' and metrics.accuracy is not null
order by experiment, model, suite, category
