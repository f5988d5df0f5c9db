-- metrics, scores -> the temporary tables that models are compared by. An entry is a model under one
-- experiment as one version of a judge sees it: its latest complete runs of the published version.
create or replace temp table entry_runs as
with complete_runs as (
    select
        grading, run_id, model, metrics.experiment, metrics.scope, judge, judge_version,
        metrics.samples, runs.parameters, runs.simulated, opened_at, judged_at, accuracy
    from metrics
    join runs using (run_id, model)
    join gradings using (run_id, model, judge, judge_version)
    where slice = 'all'
        and complete
        and metrics.scope <> 'filtered'
        and metrics.benchmark_version in (select benchmark_version from benchmark_versions where is_published)
),
-- Only those that asked the same questions in the same way as the latest one, a full one if there is any.
alike as (
    select *
    from complete_runs
    qualify row(scope, parameters::varchar, samples) = first_value(row(scope, parameters::varchar, samples)) over (
        partition by model, experiment, judge, judge_version
        order by scope = 'full' desc, opened_at desc, run_id)
)
select *
from alike
qualify row_number() over (
    partition by model, experiment, judge, judge_version order by opened_at desc, run_id) <= 10;

-- Of each judge one version is official: the one with the prompt of the benchmark version, then the one
-- that scored the most models, then the one last at work. Where no prompt was kept, it is taken for that one.
create or replace temp table official_versions as
with prompts as (
    select judge, judge_version, coalesce(bool_or(prompt_hash <> judge_prompt_hash), false) as is_other
    from judged
    cross join (select any_value(judge_prompt_hash) as judge_prompt_hash from benchmark_versions where is_published)
    group by judge, judge_version
)
select judge, judge_version
from entry_runs
join prompts using (judge, judge_version)
group by judge, judge_version, is_other
qualify row_number() over (
    partition by judge order by is_other, count(distinct model) desc, max(judged_at) desc, judge_version) = 1;

create or replace temp table entries as
select
    row_number() over (
        order by judge, judge_version, experiment, scope, avg(accuracy::decimal(18, 12)) desc, model)::integer as entry,
    model, experiment, judge, judge_version, scope,
    any_value(samples) as samples,
    count(*) as runs,
    list(run_id order by opened_at desc, run_id) as run_ids,
    stddev_samp(accuracy order by accuracy) as standard_deviation,
    bool_or(simulated) as simulated,
    max(opened_at) as opened_at,
    (judge, judge_version) in (select (judge, judge_version) from official_versions) as is_official
from entry_runs
group by model, experiment, judge, judge_version, scope;

-- The mean of all replies to an item comes first, so that an item counts once however often it was asked.
create or replace temp table entry_scores as
select entry, item, cluster, (sum(mean_score::decimal(24, 18)) / count(*))::double as score
from item_scores
join entry_runs using (grading)
join entries using (model, experiment, judge, judge_version)
group by entry, item, cluster;

-- For what is computed outside of SQL.
create or replace temp table compared (
    entry_a integer, entry_b integer, items bigint, accuracy_a double, accuracy_b double,
    difference double, difference_low double, difference_high double, bootstrap_low double,
    bootstrap_high double, standard_error double,
    standard_error_clustered double, better bigint, worse bigint, exact_mcnemar boolean, p_value double,
    p_adjusted double, pairs bigint, detectable double);
create or replace temp table ranks (entry integer, rank_low bigint, rank_high bigint, ties varchar)
