-- One run as each version of each judge sees it, the one that has scored most first; without a judge if nobody has judged.
select
    judge, judge_version, planned, answered, failed, judged, accuracy, standard_error, accuracy_low, accuracy_high,
    coverage, incomplete_because
from metrics
where run_id = $run_id and model = $model and slice = 'all'
order by judged desc, judged_at desc nulls last, judge, judge_version
