-- Numbers that can not be.
select model, left(run_id, 8) as run, slice, suite, category, input, accuracy, coverage, calibration_error
from metrics
where not (
    coverage between 0 and 1
    and planned = items * samples
    and judged <= planned
    and items_judged between 0 and least(items, judged)
    and clusters <= items_judged
    and answered + failed <= planned
    and accuracy_if_missing_wrong between 0 and 1
    and accuracy_if_missing_right between accuracy_if_missing_wrong and 1
    and (accuracy is null) = (judged = 0)
    and coalesce(accuracy between accuracy_low and accuracy_high, true)
    and coalesce(accuracy_low >= 0 and accuracy_high <= 1, true)
    and coalesce(accuracy between accuracy_if_missing_wrong - 1e-9 and accuracy_if_missing_right + 1e-9, true)
    and coalesce(standard_error between 0 and 1, true)
    and coalesce(standard_error_clustered between 0 and 1, true)
    and coalesce(accuracy between bootstrap_low - 1e-9 and bootstrap_high + 1e-9, true)
    and coalesce(calibration_error between 0 and 1, true)
    and coalesce(expected_calibration_error between 0 and calibration_error + 1e-9, true)
    and coalesce(brier_score between 0 and 1, true)
    and coalesce(cost_usd >= 0, true)
    and coalesce(latency_p50_s <= latency_p95_s, true)
)
order by model, run, slice
