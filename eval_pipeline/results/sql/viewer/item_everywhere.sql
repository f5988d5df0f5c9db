-- What models replied to an item, each in its latest run that has a reply, by the judge that stands for the run.
with latest as (
    select predictions.*, experiment, opened_at, runs.simulated
    from predictions
    join runs using (run_id, model)
    where suite = $suite and item_id = $item_id and sample = 0
    qualify row_number() over (partition by model, experiment order by is_result desc, opened_at desc, run_id) = 1
),
verdicts as (
    select prediction_id, score, judged.outcome as judge_outcome, extracted_answer, confidence, failed_step, judge
    from judged
    join run_standing using (run_id, model, judge, judge_version)
    where stands and suite = $suite and item_id = $item_id
)
select
    run_id, model, experiment, simulated, opened_at, outcome, is_result,
    left(answer, 600) as answer, length(answer) as characters, error,
    score, judge_outcome, extracted_answer, confidence, failed_step, judge
from latest
left join verdicts using (prediction_id)
order by score desc nulls last, model, experiment
