-- Whatever metrics can be asked for: every model, experiment and judge that has any; and the published version.
select
    list_sort(list(distinct model)) as models,
    list_sort(list(distinct experiment)) as experiments,
    list_sort(list(distinct judge) filter (judge is not null)) as judges,
    (select list(distinct benchmark_version) from benchmark_versions where is_published) as published
from metrics
