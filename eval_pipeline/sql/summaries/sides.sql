-- What a name may mean, as each judge sees it: a model's runs on the leaderboard, or runs whose id begins so.
with graded as (
    select run_id, model, judge, judge_version, max(finished_at) as judged_at
    from judged
    where score is not null
    group by all
),
board as (
    select
        model as meant, model, experiment, run_ids, benchmark_version, samples, simulated,
        judge, judge_version
    from leaderboard
    where model = $name and experiment = $experiment
),
-- A model's name may have an @ in it too.
named as (
    select
        model || '@' || run_id as meant, model, experiment, [run_id] as run_ids, benchmark_version, samples, simulated,
        judge, judge_version,
        $name in (run_id, meant) as is_whole
    from runs
    join graded using (run_id, model)
    where starts_with(run_id, $name)
        or (starts_with($name, model || '@') and starts_with(meant, $name))
),
found as (
    select * from board
    union all
    select * exclude (is_whole) from named where is_whole = (select bool_or(is_whole) from named)
)
select
    *,
    (select max(judged_at)
        from graded
        where graded.model = found.model
            and graded.judge = found.judge
            and graded.judge_version = found.judge_version
            and list_contains(run_ids, run_id)) as judged_at
from found
order by meant, judge, judge_version
