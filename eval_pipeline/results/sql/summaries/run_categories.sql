-- How one run stands, category by category, as one version of a judge sees it.
select suite, category, items, planned, answered, failed, judged, correct, accuracy, accuracy_low, accuracy_high
from metrics
where slice = 'category'
    and run_id = $run_id
    and model = $model
    and judge is not distinct from $judge
    and judge_version is not distinct from $judge_version
order by suite, category
