-- Every two entries of the leaderboard that were compared, by the official version of each judge.
select comparisons.*
from comparisons
semi join (select judge, judge_version from leaderboard where is_official) as official using (judge, judge_version)
where family = 'models' and ($models is null or (list_contains($models, model_a) and list_contains($models, model_b)))
order by judge, experiment_a, model_a, model_b
