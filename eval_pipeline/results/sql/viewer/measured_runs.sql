-- How many runs there are, and how many of them are complete.
select complete, simulated, count(*) as value
from run_standing
where stands
group by all
order by all
