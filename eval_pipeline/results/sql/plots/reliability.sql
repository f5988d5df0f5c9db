-- The calibration of each model's latest run on the leaderboard.
select model, experiment, bin, mean_confidence, bins.accuracy, bins.accuracy_low, bins.accuracy_high, size, simulated
from calibration_bins bins
join plotted using (run_id, model, judge, judge_version)
order by experiment, model, bin
