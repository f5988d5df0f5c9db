-- How right a run's replies were at each level of stated confidence.
select bin, size, mean_confidence, accuracy, accuracy_low, accuracy_high
from calibration_bins
where run_id = $run_id and model = $model and judge = $judge and judge_version = $judge_version
order by bin
