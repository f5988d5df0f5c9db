-- Every benchmark version with its suites and how many runs it has, the latest first.
select
    benchmark_version,
    any_value(name) as name,
    bool_or(is_published) as is_published,
    bool_or(is_current) as is_current,
    sum(items)::bigint as items,
    list({'suite': suite, 'suite_version': suite_version, 'kind': kind, 'items': items} order by suite) as suites,
    min(first_loaded_at) as first_loaded_at,
    max(last_loaded_at) as last_loaded_at,
    max(minted_at) as minted_at,
    (select count(*) from runs where runs.benchmark_version = benchmark_versions.benchmark_version) as runs
from benchmark_versions
group by benchmark_version
order by max(last_loaded_at) desc
