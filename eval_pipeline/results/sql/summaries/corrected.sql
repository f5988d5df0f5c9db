-- The corrected p-value of two sides that stand on the leaderboard just as they are.
select p_adjusted, pairs
from comparisons
where judge = $judge
    and judge_version = $judge_version
    and ((model_a = $model_a and run_ids_a = $runs_a and model_b = $model_b and run_ids_b = $runs_b)
        or (model_a = $model_b and run_ids_a = $runs_b and model_b = $model_a and run_ids_b = $runs_a))
