-- The numbers of all runs and slices.
select 'metrics', count(*), bit_xor(hash(metrics)) from metrics
union all
select 'pass_at_k', count(*), bit_xor(hash(pass_at_k)) from pass_at_k
union all
select 'calibration_bins', count(*), bit_xor(hash(calibration_bins)) from calibration_bins
order by all
