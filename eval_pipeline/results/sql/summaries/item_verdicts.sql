-- Every judge's verdict, under each of its versions, on the replies to one item in one run, with the steps of code.
with taken as (
    select
        prediction_id, run_id, model, judge, judge_version,
        list({step: step, status: status, reason: reason, output: output, seconds: seconds, tests: tests}
            order by position) as steps
    from steps
    where run_id = $run_id and model = $model and suite = $suite and item_id = $item_id
    group by all
)
select judged.*, coalesce(steps, []) as steps
from judged
left join taken using (prediction_id, run_id, model, judge, judge_version)
where run_id = $run_id and model = $model and suite = $suite and item_id = $item_id
order by sample, judge, finished_at, judge_version
