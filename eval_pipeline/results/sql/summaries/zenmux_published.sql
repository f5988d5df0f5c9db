-- The numbers of every model of the run $run_id by the verdicts that were imported with it.
select model, correct, judged, calibration_error_last_bin_dropped
from metrics
where slice = 'all' and run_id = $run_id and judge_version = $judge_version
qualify row_number() over (partition by model order by judged desc, judge) = 1
