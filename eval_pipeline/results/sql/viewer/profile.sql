-- How good a model is in each category, and how good the others are that were asked the same in the same way: of its
-- judge with the most entries, under the official version.
with entries as (
    from leaderboard_slices
    where is_official and category is not null and experiment = $experiment
),
board as (
    select judge, judge_version, scope
    from entries
    where model = $model
    group by judge, judge_version, scope
    qualify row_number() over (order by count(*) desc, judge, scope) = 1
)
select
    suite,
    category,
    any_value(judged) filter (model = $model) as judged,
    any_value(accuracy) filter (model = $model) as accuracy,
    any_value(accuracy_low) filter (model = $model) as accuracy_low,
    any_value(accuracy_high) filter (model = $model) as accuracy_high,
    avg(accuracy) filter (model <> $model) as others,
    count(*) filter (model <> $model) as other_models
from entries
semi join board using (judge, judge_version, scope)
group by suite, category
having any_value(accuracy) filter (model = $model) is not null
order by suite, category
