-- What wrong replies of one run say, and what came of each step that their code was taken through. The verdicts on them
-- are named by $prediction_ids and, in the same order, $judges and $judge_versions.
with meant as (
    select
        unnest($prediction_ids::varchar[]) as prediction_id,
        unnest($judges::varchar[]) as judge,
        unnest($judge_versions::varchar[]) as judge_version
),
taken as (
    select
        prediction_id, judge, judge_version,
        list({name: step, status: status, reason: reason, output: output, seconds: seconds, tests: tests}
            order by position) as steps
    from steps
    semi join meant using (prediction_id, judge, judge_version)
    where run_id = $run_id and model = $model
    group by all
)
select prediction_id, judge, judge_version, answer, coalesce(steps, []) as steps
from predictions
join meant using (prediction_id)
left join taken using (prediction_id, judge, judge_version)
where run_id = $run_id and model = $model
