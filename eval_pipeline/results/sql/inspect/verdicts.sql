-- Every judge's verdict, under each of its versions, on the replies of one run to some of its items, with the steps of code.
-- The texts are wide: which rows these are is found out without them.
with chosen as materialized (
    select rowid as verdict
    from judged
    where run_id = $run_id and model = $model
        and (suite, item_id) in (select (unnest($suites), unnest($items)))
),
chosen_steps as materialized (
    select rowid as taken
    from steps
    where run_id = $run_id and model = $model
        and (suite, item_id) in (select (unnest($suites), unnest($items)))
),
taken as (
    select
        prediction_id, judge, judge_version,
        list({step: step, status: status, reason: reason, output: output, seconds: seconds, tests: tests}
            order by position) as steps
    from steps
    join chosen_steps on chosen_steps.taken = steps.rowid
    group by all
)
select judged.*, coalesce(steps, []) as steps
from judged
join chosen on chosen.verdict = judged.rowid
left join taken using (prediction_id, judge, judge_version)
order by judge, judge_version
