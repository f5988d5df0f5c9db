-- Every judge's verdict, under each of its versions, on the replies of one run to some of its items, with the steps of code.
with taken as (
    select
        prediction_id, judge, judge_version,
        list({step: step, status: status, reason: reason, output: output, seconds: seconds, tests: tests}
            order by position) as steps
    from steps
    where run_id = $run_id and model = $model
        and (suite, item_id) in (select (unnest($suites), unnest($items)))
    group by all
)
select judged.*, coalesce(steps, []) as steps
from judged
left join taken using (prediction_id, judge, judge_version)
where run_id = $run_id and model = $model
    and (suite, item_id) in (select (unnest($suites), unnest($items)))
order by judge, judge_version
