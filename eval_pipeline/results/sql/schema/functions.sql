-- Functions for the queries of the project, and for anyone's own.

-- 95 % intervals for a share, as functions anybody can use in their own queries.
-- Rounding must not put the share itself outside of its interval.
create macro wilson_center(hits, n) as (hits + 1.959963984540054 ** 2 / 2) / (n + 1.959963984540054 ** 2);

create macro wilson_half(hits, n) as
    1.959963984540054 / (n + 1.959963984540054 ** 2) * sqrt(hits * (n - hits) / n + 1.959963984540054 ** 2 / 4);

create macro wilson_low(hits, n) as
    case when n > 0 then greatest(0, least(hits / n, wilson_center(hits, n) - wilson_half(hits, n))) end;

create macro wilson_high(hits, n) as
    case when n > 0 then least(1, greatest(hits / n, wilson_center(hits, n) + wilson_half(hits, n))) end;

create macro wald_half_width(share, n) as
    case when n > 0 then 1.959963984540054 * sqrt(share * (1 - share) / n) end;

-- What is left to do in each run if these are the judges that the settings name: replies that were not asked for,
-- that failed, and that are to be judged. Several judges each finish what they have begun. A single one leaves a run
-- alone that anybody has judged as a whole. Other judges, and older versions, never leave anything to do. Where no
-- judge is named, the one that stands goes on. Code without questions is always judged under the name steps.
create macro left_to_do(judges) as table
with seen as (
    select *, coalesce(judge = 'steps' or list_contains(judges, judge), false) as is_named
    from run_standing
)
select
    run_id,
    model,
    max(planned - answered - failed) as not_asked,
    max(failed) as failed,
    case
        when bool_or(judged >= answered) and not (len(judges) > 1 and bool_or(is_named)) then 0
        when bool_or(is_named) then max(not_judged) filter (is_named and is_newest_version)
        when len(judges) = 0 then max(not_judged) filter (stands)
        else max(answered)
    end as to_judge
from seen
group by run_id, model;

-- Runs at work, if these are the launches whose process is alive: what they opened or judge, and the newest run of what
-- they set out to ask.
create macro runs_at_work(launches) as table
select run_id, model from runs where list_contains(launches, run_id)
union
select run_id, model from (
    select run_id, model from judged where list_contains(launches, launch)
    union
    select arg_max(run_id, opened_at) as run_id, model
    from runs
    semi join (from attempts where list_contains(launches, run_id)) launched using (model, experiment)
    group by model, experiment
) others;

-- What went wrong in runs, reply by reply: asked in vain (no answer), judged in vain (no verdict), or scored below 1 by
-- the judge that stands for the run (wrong). What was not asked or not judged yet is not among it. The runs are named by
-- their ids and, in the same order, their models. What is wrong comes with what is known of why; error is what the
-- analyst says of it in a line, else what the server said.
create macro failed_replies(run_ids, models) as table
with meant as (
    select unnest(run_ids) as run_id, unnest(models) as model
),
standing as (
    select run_id, model, judge, judge_version
    from run_standing
    semi join meant using (run_id, model)
    where stands
),
verdicts as (
    select
        run_id, model, prediction_id, judge, judge_version, outcome as judge_outcome, score, failed_step,
        extracted_answer, reason, true as is_judged
    from judged
    semi join standing using (run_id, model, judge, judge_version)
    where score is null or score < 1
),
replies as (
    select
        run_id,
        model,
        prediction_id,
        case when not is_result then 'no answer' when score is null then 'no verdict' else 'wrong' end as went,
        suite,
        item_id,
        sample,
        carried_from,
        outcome,
        error,
        judge,
        judge_version,
        judge_outcome,
        score,
        failed_step,
        extracted_answer,
        reason
    from predictions
    semi join meant using (run_id, model)
    semi join plans using (run_id, model, suite, item_id)
    left join verdicts using (run_id, model, prediction_id)
    where not is_result or is_judged
),
analysis as (
    select
        run_id, model, prediction_id, judge, judge_version, error as error_in_a_line, classification,
        analyst_classification, overridden, override_note, overridden_at, reasoning, model_snippet, expected_snippet,
        gap, analyst, analyst_version, unexplained_because
    from failure_analysis
    semi join standing using (run_id, model, judge, judge_version)
)
select
    run_id,
    model,
    experiment,
    simulated,
    benchmark_version,
    went,
    suite,
    category,
    items.kind,
    coalesce(gaps, '') <> '' as has_gaps,
    item_id,
    sample,
    samples,
    prediction_id,
    carried_from,
    outcome,
    coalesce(error_in_a_line, error) as error,
    judge,
    judge_version,
    judge_outcome,
    score,
    failed_step,
    extracted_answer,
    reason,
    classification,
    analyst_classification,
    coalesce(overridden, false) as overridden,
    override_note,
    overridden_at,
    reasoning,
    model_snippet,
    expected_snippet,
    gap,
    analyst,
    analyst_version,
    unexplained_because
from replies
join runs using (run_id, model)
join benchmark_versions using (benchmark_version, suite)
join items using (suite, suite_version, item_id)
left join analysis using (run_id, model, prediction_id, judge, judge_version)
where sample < samples;

-- The leaderboard by suite and category, and in one place how many scores an interval is for.
create macro effective_scores(items, scores, accuracy, standard_error) as
    case
        when accuracy in (0, 1) or standard_error is null then items
        when standard_error = 0 then scores
        else greatest(items, least(scores, accuracy * (1 - accuracy) / standard_error ** 2))
    end;
