-- The items that the chosen runs were asked, as they were then.
select items.*
from items
semi join (
    select plans.suite, plans.item_id, benchmark_versions.suite_version
    from plans
    join chosen using (run_id, model)
    join benchmark_versions
        on benchmark_versions.benchmark_version = chosen.benchmark_version
        and benchmark_versions.suite = plans.suite
) using (suite, item_id, suite_version)
