-- Replies by model and outcome; models beyond the $most with the most replies are one.
with names as (
    select model, if(row_number() over (order by count(*) desc, model) <= $most, model, 'other') as name
    from predictions
    group by model
)
select name as model, simulated, outcome, count(*) as value
from predictions
join runs using (run_id, model)
join names using (model)
group by all
order by all
