-- The results in a few numbers that can be followed over time.
select
    (select count(distinct (run_id, model)) from metrics) as runs,
    (select count(distinct (run_id, model)) from metrics where complete) as complete_runs,
    (select count(*) from comparisons) as compared_pairs,
    (select count(*) from comparisons where significant) as told_apart,
    (select count(distinct model) from leaderboard_entries where is_official) as models_ranked,
    (select max(accuracy) from leaderboard_entries where is_official) as best_accuracy
