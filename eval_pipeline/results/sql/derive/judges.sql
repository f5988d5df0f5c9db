-- judged, rejudged, human_labels -> the counts that the measures of judge_reliability are made of.
-- A verdict counts if somebody gave it: where the model failed to answer, all judges say the same.
create or replace temp view graded as
select
    prediction_id, run_id, model, judge, judge_version,
    score = 1 as correct,
    carried_from is not null as carried,
    -- Verdicts from before this was kept are those of the judge model itself.
    coalesce(graded_by, judge) as grader,
    lower(split_part(regexp_replace(judge, '^rules\+', ''), '/', 1)) as vendor,
    finished_at
from judged
where score is not null
    and (graded_by is not null or attempts > 0)
    -- Of code no judge has an opinion.
    and coalesce(graded_by, '') <> 'steps';

create or replace temp table repeat_units as
with verdicts as (
    select prediction_id, run_id, model, judge, judge_version, correct
    from graded
    semi join rejudged using (prediction_id, run_id, model, judge, judge_version)
    union all
    select prediction_id, run_id, model, judge, judge_version, score = 1
    from rejudged
    where score is not null
),
units as (
    select judge, judge_version, count(*) filter (not correct) as wrong, count(*) filter (correct) as correct
    from verdicts
    group by judge, judge_version, prediction_id, run_id, model
)
select judge, judge_version, wrong, correct, count(*) as items
from units
where wrong + correct > 1
group by all
order by all;

-- Judges are compared as they are: under the version that each of them used last.
create or replace temp table judges_at_work as
select
    row_number() over (order by judge)::integer as judge_number,
    judge,
    vendor,
    arg_max(judge_version, (finished_at, judge_version)) as judge_version
from graded
group by judge, vendor;

create or replace temp table shared_verdicts as
select prediction_id, run_id, model, judge_number, correct, carried, grader, finished_at
from graded
join judges_at_work using (judge, judge_version)
where (select count(*) from judges_at_work) > 1;

-- What was carried over from another run is counted there. Two verdicts of one grader, above all of the rules,
-- are no two opinions: that they are the same says nothing about judges.
create or replace temp table judge_pairs as
with pairs as (
    select
        one.judge_number as judge_number,
        other.judge_number as other_number,
        count(*) filter (one.correct and other.correct) as both_correct,
        count(*) filter (one.correct and not other.correct) as one_correct,
        count(*) filter (not one.correct and other.correct) as other_correct,
        count(*) filter (not one.correct and not other.correct) as both_wrong
    from shared_verdicts one
    join shared_verdicts other using (prediction_id, run_id, model)
    where one.judge_number < other.judge_number and not (one.carried and other.carried)
        and one.grader <> other.grader
    group by all
)
select
    one.judge, one.judge_version, other.judge as other_judge, other.judge_version as other_judge_version,
    both_correct, one_correct, other_correct, both_wrong
from pairs
join judges_at_work one on one.judge_number = pairs.judge_number
join judges_at_work other on other.judge_number = pairs.other_number
order by all;

-- Rules before a model are left out where the model or the rules judge by themselves too: they would speak twice.
create or replace temp table independent_judges as
select judge_number
from judges_at_work
where not (
    starts_with(judge, 'rules+')
    and exists (from judges_at_work alone where alone.judge in ('rules', substr(judges_at_work.judge, 7))));

create or replace temp table judge_units as
with opinions as (
    select
        prediction_id, run_id, model,
        arg_max(correct, (finished_at, judge_number)) as correct,
        bool_and(carried) as carried
    from shared_verdicts
    semi join independent_judges using (judge_number)
    where (select count(*) from independent_judges) > 2
    group by prediction_id, run_id, model, grader
),
units as (
    select count(*) filter (not correct) as wrong, count(*) filter (correct) as correct
    from opinions
    group by prediction_id, run_id, model
    having count(*) > 1 and not bool_and(carried)
)
select wrong, correct, count(*) as items
from units
group by all
order by all;

-- A label counts once, also where several replies are the text that it is about.
create or replace temp table people_counts as
with meant as (
    select line, labeller, correct as truth, unnest(prediction_ids) as prediction_id
    from human_labels
),
said as (
    select
        line, labeller, truth, judge, judge_version,
        arg_max(correct, (not carried, finished_at, prediction_id)) as correct
    from meant
    join graded using (prediction_id)
    group by all
)
select
    judge, judge_version, labeller,
    count(*) filter (truth and correct) as tp,
    count(*) filter (not truth and correct) as fp,
    count(*) filter (not truth and not correct) as tn,
    count(*) filter (truth and not correct) as fn
from said
group by grouping sets ((judge, judge_version), (judge, judge_version, labeller))
having grouping(labeller) = 1 or labeller is not null
order by judge, judge_version, labeller nulls first;

create or replace temp table family_counts as
with own as (
    select prediction_id, run_id, model, judge, judge_version, vendor, correct
    from graded
    where vendor = lower(split_part(model, '/', 1)) and contains(judge, '/') and grader <> 'rules' and not carried
),
others as (
    select
        prediction_id, run_id, model, own.vendor,
        (count(*) filter (shared_verdicts.correct) / count(*))::decimal(18, 12) as rate
    from (select distinct prediction_id, run_id, model, vendor from own) own
    join shared_verdicts using (prediction_id, run_id, model)
    join judges_at_work using (judge_number)
    where judges_at_work.vendor <> own.vendor
    group by all
)
select
    judge, judge_version,
    list(distinct model order by model) as models,
    count(*) as items,
    count(*) filter (correct) as correct,
    count(rate) as shared_items,
    count(*) filter (correct and rate is not null) as shared_correct,
    (sum(rate) / count(rate))::double as other_rate,
    bool_and(simulated) as simulated
from own
left join others using (prediction_id, run_id, model, vendor)
left join (select run_id, model, simulated from runs) using (run_id, model)
group by judge, judge_version
order by judge, judge_version
