-- Selected models that are on no leaderboard that is shown, and why, going by the latest run of each.
with latest as (
    select model, run_id, scope, incomplete_because
    from metrics
    join runs using (run_id, model, scope, benchmark_version)
    where slice = 'all'
        and benchmark_version in (select benchmark_version from benchmark_versions where is_published)
    qualify row_number() over (partition by model order by opened_at desc, run_id, complete desc, judged_at desc) = 1
)
select
    model,
    left(run_id, 8) as run,
    case
        when run_id is null then 'no run of this benchmark version'
        when incomplete_because is not null then incomplete_because
        when scope = 'filtered' then 'only a part was asked'
        else 'judged only with another prompt or limit'
    end as reason
from model_catalog
left join latest using (model)
where selected and listed and model not in (select model from leaderboard where is_official)
order by model
