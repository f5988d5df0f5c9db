-- Every benchmark version with the runs it has, the latest first.
select
    benchmark_version as version,
    coalesce(any_value(name), '') as name,
    case
        when bool_or(is_published) then 'on the leaderboard'
        when bool_or(is_current) then 'draft'
        else 'archived'
    end as state,
    sum(items)::bigint as items,
    strftime(max(last_loaded_at), '%Y-%m-%d') as loaded,
    (select count(*) from runs where runs.benchmark_version = benchmark_versions.benchmark_version) as runs
from benchmark_versions
group by benchmark_version
order by max(last_loaded_at) desc
