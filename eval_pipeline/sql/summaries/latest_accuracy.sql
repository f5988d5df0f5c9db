-- The latest accuracy of each model, whichever the experiment: of its newest run that has scores, under the judge
-- who has got farthest.
select model, accuracy, judged
from metrics
join runs using (run_id, model)
where slice = 'all' and accuracy is not null
qualify row_number() over (partition by model order by opened_at desc, run_id, judged desc, judged_at desc, judge) = 1
order by model
