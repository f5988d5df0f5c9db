-- Categories in which at least 2 items of a run failed, beside the run as a whole; whether one stands out is for
-- statistics to say. An item failed if any of its replies is wrong.
with failures as (
    select distinct suite, item_id
    from failed_replies([$run_id], [$model])
    where went = 'wrong' and judge = $judge and judge_version = $judge_version
),
scored as (
    select distinct suite, item_id
    from judged
    semi join plans using (run_id, model, suite, item_id)
    where run_id = $run_id and model = $model and judge = $judge and judge_version = $judge_version
        and score is not null
),
outcomes as (
    select suite, category, item_id, failures.item_id is not null as is_failed
    from scored
    join (select benchmark_version from runs where run_id = $run_id and model = $model) run on true
    join benchmark_versions using (benchmark_version, suite)
    join items using (suite, suite_version, item_id)
    left join failures using (suite, item_id)
)
select
    suite || '/' || category as subject,
    count(*) filter (is_failed) as count,
    count(*) as of,
    list(suite || '/' || item_id order by item_id) filter (is_failed) as items,
    [$model] as models,
    (select count(*) filter (is_failed) from outcomes) as failed_in_all,
    (select count(*) from outcomes) as judged_in_all
from outcomes
group by suite, category
having count >= 2
order by count / count(*) desc, count desc, subject
