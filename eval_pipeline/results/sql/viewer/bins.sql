-- How right a run's replies were at each level of stated confidence.
select model, bin, size, mean_confidence, accuracy, accuracy_low, accuracy_high, simulated
from calibration_bins
join (select run_id, model, simulated from runs) as asked using (run_id, model)
where run_id = $run_id and model = $model and judge = $judge and judge_version = $judge_version
order by bin
