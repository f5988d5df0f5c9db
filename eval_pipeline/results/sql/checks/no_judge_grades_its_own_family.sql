-- Models whose latest run was graded by a model of the same vendor. The simulated ones are no vendor's.
with latest as (
    select run_id, model
    from runs
    join (select distinct benchmark_version from benchmark_versions where is_current) using (benchmark_version)
    where not simulated
    qualify row_number() over (partition by model, experiment order by opened_at desc) = 1
)
select model, left(run_id, 8) as run, judge, count(*) as verdicts, avg(score) as mean_score
from latest
join judged using (run_id, model)
where score is not null
    -- Verdicts from before it was kept who gave them are those of the judge; rules and steps have no vendor.
    and contains(coalesce(graded_by, judge), '/')
    and (graded_by is not null or attempts > 0)
    and lower(split_part(regexp_replace(coalesce(graded_by, judge), '^rules\+', ''), '/', 1))
        = lower(split_part(model, '/', 1))
group by model, run_id, judge
order by model, judge, run
