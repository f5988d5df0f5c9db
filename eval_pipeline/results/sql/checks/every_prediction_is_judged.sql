-- Usable replies of each model's latest run that its judge (the last one at work, in that version) has not scored.
-- What the rules can not decide stays so: there is nothing to be done about it.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
),
judges as (
    select run_id, model, judge, judge_version
    from judged
    qualify row_number() over (partition by run_id, model order by finished_at desc, judge, judge_version) = 1
),
verdicts as (
    select prediction_id, score, reason, outcome from judged join judges using (run_id, model, judge, judge_version)
)
select model, left(run_id, 8) as run, suite, item_id, sample, coalesce(verdicts.reason, 'not judged yet') as reason
from latest
join predictions using (run_id, model)
left join verdicts using (prediction_id)
where is_result and verdicts.score is null and verdicts.outcome is distinct from 'undecided'
order by model, suite, item_id, sample
