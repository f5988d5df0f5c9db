-- The comparisons by the official version of each judge, the closest pairs first.
with simulated as (select distinct model from leaderboard_entries where simulated)
select
    model_a,
    model_b,
    if(family = 'models', experiment_a, experiment_a || ' / ' || experiment_b) as experiment,
    items,
    difference,
    difference_low,
    difference_high,
    better,
    worse,
    p_adjusted,
    significant,
    detectable,
    judge,
    model_a in (from simulated) or model_b in (from simulated) as simulated
from comparisons
semi join (from leaderboard_entries where is_official) using (judge, judge_version)
order by p_adjusted desc, model_a, model_b
