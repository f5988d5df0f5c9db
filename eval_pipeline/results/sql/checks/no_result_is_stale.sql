-- Results that are older than 70 days: no model's turn comes later than after 60, and ten more are for repairs.
select model, experiment, round(stale_days, 1) as stale_days, last_complete_at
from freshness
where stale_days > 70 and not filtered
order by last_complete_at, model, experiment
