-- Both sides' mean scores on the items that both have one on: samples first, then runs.
with planned as (
    select model, run_id, suite, item_id, samples
    from runs
    join plans using (run_id, model)
),
scored as (
    select model, run_id, suite, item_id, sum(score::decimal(18, 12)) / count(*) as mean_score
    from judged
    join planned using (model, run_id, suite, item_id)
    where score is not null and sample < samples and judge = $judge and judge_version = $judge_version
    group by model, run_id, suite, item_id
),
a as (
    select suite, item_id, (sum(mean_score::decimal(24, 18)) / count(*))::double as score
    from scored
    where model = $model_a and list_contains($runs_a, run_id)
    group by suite, item_id
),
b as (
    select suite, item_id, (sum(mean_score::decimal(24, 18)) / count(*))::double as score
    from scored
    where model = $model_b and list_contains($runs_b, run_id)
    group by suite, item_id
),
about as (
    select suite, item_id, category, suite || '/' || cluster as cluster, if(is_clustered, cluster, item_id) as unit
    from items
    join benchmark_versions using (suite, suite_version)
    where benchmark_version = $benchmark_version
)
select suite, item_id, category, a.score, b.score, cluster, concat_ws('/', suite, unit)
from a
join b using (suite, item_id)
join about using (suite, item_id)
order by round(a.score - b.score, 12) desc, suite, item_id
