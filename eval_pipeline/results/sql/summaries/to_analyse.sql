-- The wrong replies of runs, for an analyst to look into. The runs are named by $run_ids and, in the same order, $models.
select
    run_id, model, experiment, simulated, benchmark_version, suite, item_id, sample, category, prediction_id, judge,
    judge_version, failed_step, reason, extracted_answer
from failed_replies($run_ids::varchar[], $models::varchar[])
join (select run_id, model, opened_at from runs) opened using (run_id, model)
where went = 'wrong'
order by opened_at desc, run_id, model, suite, category, item_id, sample
