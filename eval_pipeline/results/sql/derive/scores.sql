-- plans, predictions, judged -> the temporary tables that all numbers are made of. What is counted is
-- numbered first: grouping, joining and sorting by a number takes a fraction of what names take.
create or replace temp table exam as
select
    row_number() over (order by suite, item_id, benchmark_version)::integer as item,
    benchmark_version, suite, item_id, category,
    if(image is null, 'text', 'image') as input,
    dense_rank() over (order by suite, cluster)::integer as cluster,
    -- What is drawn as a whole when items are drawn: a cluster that the suite names, else the item alone.
    if(is_clustered, -dense_rank() over (order by suite, cluster),
        row_number() over (order by suite, item_id, benchmark_version))::integer as unit
from (select suite, suite_version, item_id, category, image, cluster, is_clustered from items)
join benchmark_versions using (suite, suite_version);

-- A grading is a run as one version of a judge sees it; a run that nobody judged has one without a judge.
create or replace temp table gradings as
select
    row_number() over (order by model, opened_at, run_id, judge, judge_version)::integer as grading,
    run_id, model, benchmark_version, samples, judge, judge_version
from runs
left join (select distinct run_id, model, judge, judge_version from judged) using (run_id, model);

create or replace temp table slices as
with kinds as (
    select distinct grading, suite, category, input
    from gradings
    join plans using (run_id, model)
    join exam using (benchmark_version, suite, item_id)
),
found as (
    select
        grading,
        case
            when grouping(category) = 0 then 'category'
            when grouping(suite) = 0 then 'suite'
            when grouping(input) = 0 then 'input'
            else 'all'
        end as slice,
        suite, category, input
    from kinds
    group by grading, grouping sets ((), (suite), (suite, category), (input))
)
select row_number() over (order by grading, slice, suite, category, input)::integer as slice_id, *
from found;

-- The items of each grading, with the slices that each of them is in.
create or replace temp table planned as
select
    gradings.grading,
    exam.item,
    exam.cluster,
    plans.position,
    whole.slice_id as in_all,
    suites.slice_id as in_suite,
    categories.slice_id as in_category,
    inputs.slice_id as in_input
from gradings
join plans using (run_id, model)
join exam using (benchmark_version, suite, item_id)
join slices whole on whole.grading = gradings.grading and whole.slice = 'all'
join slices suites on suites.grading = gradings.grading and suites.slice = 'suite' and suites.suite = exam.suite
join slices categories on categories.grading = gradings.grading and categories.slice = 'category'
    and categories.suite = exam.suite and categories.category = exam.category
join slices inputs on inputs.grading = gradings.grading and inputs.slice = 'input' and inputs.input = exam.input;

create or replace temp table verdicts as
select
    grading, in_all, in_suite, in_category, in_input, item, cluster, position, sample,
    outcome,
    score,
    confidence,
    try_cast(cost_usd as decimal(24, 15)) as cost_usd,
    finished_at
from judged
join gradings using (run_id, model, judge, judge_version)
join exam using (benchmark_version, suite, item_id)
join planned using (grading, item, cluster)
where sample < samples;

-- The mean of an item's samples comes first, so that an item counts once however often it was asked.
create or replace temp table item_scores as
select
    grading, in_all, in_suite, in_category, in_input, item, cluster,
    count(*) as scored,
    count(*) filter (score = 1) as passed,
    sum(score::decimal(18, 12)) / count(*) as mean_score
from verdicts
where score is not null
group by all;

-- Item scores take few values: what is computed from their counts need not look at the items again.
create or replace temp table score_counts as
select
    coalesce(in_all, in_suite, in_category, in_input) as slice_id,
    scored, passed, mean_score, count(*) as items
from item_scores
group by scored, passed, mean_score, grouping sets (in_all, in_suite, in_category, in_input);

-- For what is computed outside of SQL.
create or replace temp table calibrations (
    slice_id integer, calibration_error double, calibration_error_last_bin_dropped double,
    expected_calibration_error double, brier_score double);
create or replace temp table reliability (
    slice_id integer, bin bigint, size bigint, confidence_low double, confidence_high double,
    mean_confidence double, correct double);
create or replace temp table bootstraps (slice_id integer, bootstrap_low double, bootstrap_high double)
