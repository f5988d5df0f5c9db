-- The latest accuracy of each model, whichever the experiment: that of its newest run that has scores.
select model, accuracy, judged
from run_standing
join runs using (run_id, model)
where stands and accuracy is not null
qualify row_number() over (partition by model order by opened_at desc, run_id) = 1
order by model
