-- How the replies of a run ended, and how many of each were right by the judge that stands for it.
with verdicts as (
    select prediction_id, score
    from judged
    join run_standing using (run_id, model, judge, judge_version)
    where stands and run_id = $run_id and model = $model
)
select outcome, is_result, count(*) as replies, count(score) as judged, sum(score) as correct
from predictions
left join verdicts using (prediction_id)
where run_id = $run_id and model = $model
group by outcome, is_result
order by is_result desc, replies desc, outcome
