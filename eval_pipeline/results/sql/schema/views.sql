-- The views that people query.

create view leaderboard as
select entries.*, model_catalog.display_name
from leaderboard_entries entries
left join model_catalog using (model);
comment on view leaderboard is 'One row per model, experiment, judge and version of the judge (is_official: the one that counts): the mean of its latest complete runs of the published benchmark version, full ones if there are any. Filtered and incomplete runs are not in it, and runs of other versions never mix with these.';

create view metrics_strict as select * from metrics where complete;
comment on view metrics_strict is 'The numbers of complete runs only: every planned reply has a score.';

create view metrics_moderate as select * from metrics;
comment on view metrics_moderate is 'The numbers of every run over what was judged: read them with coverage, incomplete_because, and the bounds that what is missing allows (accuracy_if_missing_wrong, accuracy_if_missing_right).';

create view dataset as
select items.*, benchmark_versions.benchmark_version
from items
join benchmark_versions using (suite, suite_version)
where benchmark_versions.is_current;
comment on view dataset is 'Every item of every suite of the current benchmark version.';

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

-- One rule for which judge stands for a run, and one for what is left to do in it.
create view run_standing as
with official as (
    select distinct judge, judge_version, true as is_official
    from leaderboard_entries
    where is_official
),
unsure as (
    select run_id, model, judge, judge_version, count(*) as undecided
    from judged
    where score is null and outcome = 'undecided'
    group by all
)
select
    run_id, model, experiment, scope, simulated, judge, judge_version,
    row_number() over (
        partition by run_id, model
        order by
            coalesce(is_official, false) desc, complete desc, judged desc, judged_at desc nulls last, judge, judge_version
    ) = 1 as stands,
    coalesce(is_official, false) as is_official,
    row_number() over (
        partition by run_id, model, judge order by judged_at desc nulls last, judge_version) = 1 as is_newest_version,
    planned, answered, failed, judged,
    coalesce(undecided, 0) as undecided,
    greatest(0, answered - judged - coalesce(undecided, 0)) as not_judged,
    complete, incomplete_because, correct, accuracy, accuracy_low, accuracy_high,
    cost_usd, cost_known_usd, costs_unknown, cost_estimated, judge_cost_usd, judged_at
from metrics
left join official using (judge, judge_version)
left join unsure using (run_id, model, judge, judge_version)
where slice = 'all';
comment on view run_standing is 'How each run stands as a whole, one row per version of a judge: what commands show of a run is the row that stands for it.';
comment on column run_standing.run_id is 'The run.';
comment on column run_standing.model is 'The model.';
comment on column run_standing.experiment is 'The run''s experiment.';
comment on column run_standing.scope is 'The run''s scope: full, text or filtered.';
comment on column run_standing.simulated is 'Whether a simulated model was asked.';
comment on column run_standing.judge is 'The judge whose verdicts are counted; NULL while nothing is judged.';
comment on column run_standing.judge_version is 'The version of that judge; NULL while nothing is judged.';
comment on column run_standing.stands is 'Whether this row stands for the run, one of each run: that of an official version, then one that is complete, then the one with the most scores, then the one last at work.';
comment on column run_standing.is_official is 'Whether this is the official version of its judge, as on the leaderboard.';
comment on column run_standing.is_newest_version is 'Whether of this judge''s versions this one was last at work in the run.';
comment on column run_standing.answered is 'Replies that say something about the model.';
comment on column run_standing.judged is 'Replies with a score.';
comment on column run_standing.undecided is 'Replies that the rules judged alone and can not decide: nothing is left to do about them.';
comment on column run_standing.not_judged is 'Replies that say something about the model and that this version of the judge has neither scored nor left undecided.';
comment on column run_standing.accuracy is 'Mean over the items of the mean score of their replies; items without a score are left out; NULL if none has any.';
comment on column run_standing.accuracy_low is 'Lower end of its 95 % interval, as in metrics.';
comment on column run_standing.accuracy_high is 'Upper end of that interval.';
comment on column run_standing.cost_usd is 'Cost of all replies, every attempt included; NULL if it is not known of each of them (costs_unknown), for a part of the cost must not pass for the whole.';
comment on column run_standing.cost_estimated is 'Whether any of cost_known_usd was computed from the catalog''s prices.';

-- Where the code of each run failed, counted in one place.
create view run_steps as
select
    judged.run_id,
    judged.model,
    judged.judge,
    judged.judge_version,
    runs.experiment,
    runs.simulated,
    runs.scope,
    count(*) as graded,
    count(*) filter (score = 1) as passed,
    count(*) filter (failed_step = 'filesystem') as "filesystem",
    count(*) filter (failed_step = 'install') as install,
    count(*) filter (failed_step = 'deploy') as deploy,
    count(*) filter (failed_step = 'typecheck') as typecheck,
    count(*) filter (failed_step = 'lint') as lint,
    count(*) filter (failed_step = 'tests') as tests,
    sum(tests_passed) / nullif(sum(tests_total), 0) as tests_passed_share
from judged
join runs using (run_id, model)
where judged.grader_version is not null and score is not null
group by all;
comment on view run_steps is 'At which step the answers in code of a run failed first, one row per version of a judge; runs without code have none.';
comment on column run_steps.experiment is 'The run''s experiment.';
comment on column run_steps.simulated is 'Whether a simulated model was asked.';
comment on column run_steps.scope is 'The run''s scope: full, text or filtered.';
comment on column run_steps.graded is 'Answers in code that have a score.';
comment on column run_steps.passed is 'Those that passed every step.';
comment on column run_steps.filesystem is 'Those that failed first because files were missing or wrong.';
comment on column run_steps.install is 'Those that failed first when their packages were installed.';
comment on column run_steps.deploy is 'Those that failed first when they were deployed.';
comment on column run_steps.typecheck is 'Those that failed first at the type checker.';
comment on column run_steps.lint is 'Those that failed first at the linter.';
comment on column run_steps.tests is 'Those that failed first at the tests.';
comment on column run_steps.tests_passed_share is 'Share of all tests that passed, of the answers that got as far; NULL if none did.';

create view failure_analysis as
with failures as (
    select run_id, model, prediction_id, suite, item_id, sample, judge, judge_version, failed_step
    from judged
    where score < 1
),
said as (
    select
        run_id, model, suite, item_id, failures.sample,
        arg_max_null(classification, classified_at) as classification,
        arg_max(note, classified_at) as note,
        max(classified_at) as classified_at
    from failures
    join reclassified using (run_id, model, suite, item_id)
    where reclassified.sample is null or reclassified.sample = failures.sample
    group by all
)
select
    run_id, model, suite, item_id, sample, prediction_id, judge, judge_version,
    failures.failed_step,
    error,
    coalesce(said.classification, diagnoses.classification) as classification,
    diagnoses.classification as analyst_classification,
    said.classification is not null as overridden,
    case when overridden then note end as override_note,
    case when overridden then classified_at end as overridden_at,
    gap, reasoning, model_snippet, expected_snippet, analyst, analyst_version,
    reason as unexplained_because,
    cost_usd, diagnosed_at
from failures
left join (select * exclude (suite, item_id, sample) from diagnoses) diagnoses
    using (run_id, model, prediction_id, judge, judge_version)
left join said using (run_id, model, suite, item_id, sample)
where analyst is not null or said.classification is not null;
comment on view failure_analysis is 'Why replies are wrong: one row per wrong reply that was analysed or classified, and version of a judge that found it wrong. What people say wins over the analyst.';
comment on column failure_analysis.failed_step is 'The first step that was not perfect, as in judged; NULL for answers to questions.';
comment on column failure_analysis.classification is 'MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK or KNOWN_GAP: what a person says, else the analyst; NULL if neither does.';
comment on column failure_analysis.analyst_classification is 'The same as the analyst sees it.';
comment on column failure_analysis.overridden is 'Whether a person has classified it.';
comment on column failure_analysis.override_note is 'Why, in that person''s words.';
comment on column failure_analysis.overridden_at is 'When that was, in UTC.';
comment on column failure_analysis.unexplained_because is 'Why the analyst has no explanation; empty if it has one.';
