-- The version loaded last if it is not the one on the leaderboard, with its runs.
select count(*) as runs, benchmark_version
from runs
where benchmark_version in (select benchmark_version from benchmark_versions where is_current and not is_published)
group by benchmark_version
