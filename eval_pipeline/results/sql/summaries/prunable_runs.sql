-- Runs opened before $before on which nothing rests that is shown: they are on no leaderboard, and a newer run of their
-- model covers the same experiment, scope and benchmark version.
select run_id, model, experiment, opened_at
from runs
where (run_id, model) not in (select (unnest(run_ids), model) from leaderboard)
qualify row_number() over (
        partition by model, experiment, scope, benchmark_version order by opened_at desc, run_id) > 1
    and opened_at < $before
order by run_id, model
