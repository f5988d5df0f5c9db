-- What a name may mean, as each judge sees it: a model's runs on the leaderboard, or runs whose id begins so.
with graded as (
    select
        run_id, model, judge, judge_version,
        max(finished_at) as judged_at,
        max(prompt_hash) as prompt_hash
    from judged
    where score is not null
    group by all
),
versions as (
    select distinct benchmark_version, judge_prompt_hash, is_published
    from benchmark_versions
),
official as (
    select distinct judge, judge_version
    from leaderboard
    where is_official
),
board as (
    select
        model as meant, model, experiment, run_ids, benchmark_version, samples, simulated,
        judge, judge_version, is_official
    from leaderboard
    where model = $name and experiment = $experiment
),
-- A model's name may have an @ in it too.
named as (
    select
        model || '@' || run_id as meant, model, experiment, [run_id] as run_ids, benchmark_version, samples, simulated,
        graded.judge, graded.judge_version,
        -- Of what never stood on this leaderboard, the prompt alone decides, if it was kept.
        coalesce(graded.judge_version = official.judge_version, prompt_hash = judge_prompt_hash, true) as is_official,
        $name in (run_id, meant) as is_whole
    from runs
    join versions using (benchmark_version)
    join graded using (run_id, model)
    left join official on is_published and official.judge = graded.judge
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
