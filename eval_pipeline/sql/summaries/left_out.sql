-- Latest runs of the published benchmark version that are on no leaderboard, and why.
select
    model,
    experiment,
    left(run_id, 8) as run,
    coalesce(incomplete_because, 'only a part was asked') as reason
from metrics
join runs using (run_id, model, experiment, benchmark_version, scope)
where slice = 'all'
    and benchmark_version in (select benchmark_version from benchmark_versions where is_published)
qualify row_number() over (
        partition by model, experiment order by opened_at desc, run_id, complete desc, judged_at desc) = 1
    and (scope = 'filtered' or not complete)
order by model, experiment
