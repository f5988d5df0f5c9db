-- The numbers of the run $run_id of $model over the suite $suite by $judge, of its versions the one with the most scores.
select correct, judged, calibration_error_last_bin_dropped
from metrics
where slice = 'suite' and run_id = $run_id and model = $model and suite = $suite and judge = $judge
order by judged desc, judged_at desc, judge_version
limit 1
