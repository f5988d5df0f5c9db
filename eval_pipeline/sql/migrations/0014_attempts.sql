-- When evaluating each model was attempted, and how fresh its results are.
create table attempts (
    run_id     varchar not null,
    model      varchar not null,
    experiment varchar not null,
    filtered   boolean not null,
    repair     boolean not null,
    began_at   timestamp not null,
    primary key (run_id, model)
);
comment on table attempts is 'Every launch that set out to ask a model, also if it failed before anything was asked.';
comment on column attempts.run_id is 'Id of the Dagster run that was launched; the run that it went on with may be an older one.';
comment on column attempts.model is 'The model that was to be asked.';
comment on column attempts.experiment is 'The named variation of how models are asked.';
comment on column attempts.filtered is 'Whether the launch was for a part of the benchmark only, by number, category or pattern: such runs never enter the leaderboard.';
comment on column attempts.repair is 'Whether it was to mend an earlier run (resume, fix, or a run that was named) where there is one, which is no evaluation of its own.';
comment on column attempts.began_at is 'When the model''s turn came.';

create view freshness as
-- Runs from before attempts were kept tell when they were opened, and repairs may open one.
with launches as (
    select model, experiment, filtered, run_id, began_at from attempts where not repair
    union all
    select model, experiment, scope = 'filtered', run_id, opened_at from runs
),
tried as (
    select model, experiment, filtered, max(began_at) as last_attempt_at, count(distinct run_id) as attempts
    from launches
    group by all
),
known as (
    select * from tried
    union all
    select model, null, false, null, 0
    from model_catalog
    where model not in (select model from tried where not filtered)
),
-- All judges of a run are paid; of the versions of one judge, all but one are somebody's trial.
judges as (
    select
        run_id, model, judge,
        bool_or(complete) as complete,
        min(judged_at) filter (complete) as complete_at,
        any_value(cost_known_usd) as answers_usd,
        max(judge_cost_usd) as judge_usd
    from metrics
    where slice = 'all'
    group by all
),
graded as (
    select
        run_id, model,
        bool_or(complete) as complete,
        min(complete_at) as complete_at,
        any_value(answers_usd) + coalesce(sum(judge_usd order by judge), 0) as cost_usd
    from judges
    group by all
),
latest as (
    select
        model, experiment, opened_at, complete, complete_at, cost_usd,
        scope = 'filtered' as filtered,
        benchmark_version in (select benchmark_version from benchmark_versions where is_published) as is_published,
        row_number() over (
            partition by model, experiment, scope = 'filtered', complete order by opened_at desc, run_id) as nth
    from runs
    join graded using (run_id, model)
),
measured as (
    select
        model, experiment, filtered,
        arg_max(complete_at, opened_at) filter (complete and is_published) as last_complete_at,
        coalesce(
            max(cost_usd) filter (complete and nth <= 3),
            arg_max(cost_usd, opened_at) filter (not complete)) as run_cost_usd
    from latest
    group by all
)
select
    model,
    experiment,
    filtered,
    coalesce(created_at, first_seen_at) as released_at,
    last_attempt_at,
    last_complete_at,
    attempts,
    run_cost_usd,
    -- Times here are UTC without saying so, and now() is local to whoever asks.
    epoch(make_timestamp(epoch_us(now())) - last_complete_at) / 86400 as stale_days
from model_catalog
join known using (model)
left join measured using (model, experiment, filtered)
where selected and listed;
comment on view freshness is 'How fresh the results of each selected model are: a row per experiment that it was attempted under, whole and filtered evaluations apart. A model of which no whole evaluation was ever attempted has a row with the experiment NULL.';
comment on column freshness.model is 'A model that is selected and that its gateway still lists.';
comment on column freshness.experiment is 'The named variation of how models are asked; NULL if there was never an attempt.';
comment on column freshness.filtered is 'Whether this row is about filtered runs, which never enter the leaderboard, instead of whole ones.';
comment on column freshness.released_at is 'When the model appeared, as the gateway says, else when it was seen first: its age counts from then.';
comment on column freshness.last_attempt_at is 'When evaluating it was last attempted, whatever came of it; repairs of earlier runs do not count. NULL if never.';
comment on column freshness.last_complete_at is 'When the latest complete run of the published benchmark version was judged first; NULL if there is none.';
comment on column freshness.attempts is 'How often evaluating it was attempted.';
comment on column freshness.run_cost_usd is 'What a run costs, answers and judging: the dearest of the latest three complete ones, of any benchmark version; if none is complete, what is known of the latest. NULL if nothing is known.';
comment on column freshness.stale_days is 'Days since last_complete_at, at the moment of asking; NULL if never.';
