-- reliability -> calibration_bins: each bin of a whole run with the interval of its accuracy.
insert into calibration_bins by name
select
    run_id,
    model,
    judge,
    judge_version,
    bin,
    size,
    confidence_low,
    confidence_high,
    mean_confidence,
    correct / size as accuracy,
    wilson_low(correct, size) as accuracy_low,
    wilson_high(correct, size) as accuracy_high
from reliability
join slices using (slice_id)
join gradings using (grading)
order by slice_id, bin
