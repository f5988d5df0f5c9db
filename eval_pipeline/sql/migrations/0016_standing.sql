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
comment on column run_standing.cost_usd is 'Cost of all replies, every attempt included; NULL if it is not known of each of them (costs_unknown), for a part of the cost must not pass for the whole.';
comment on column run_standing.cost_estimated is 'Whether any of cost_known_usd was computed from the catalog''s prices.';
comment on column run_standing.accuracy is 'Mean over the items of the mean score of their replies; items without a score are left out; NULL if none has any.';
comment on column run_standing.accuracy_low is 'Lower end of its 95 % interval, as in metrics.';
comment on column run_standing.accuracy_high is 'Upper end of that interval.';

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
