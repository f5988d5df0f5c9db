-- Models compared with each other; a leaderboard over several runs; versions that are published.
alter table benchmark_versions add column name varchar;
alter table benchmark_versions add column minted_at timestamp;
alter table benchmark_versions add column is_published boolean default false;
comment on column benchmark_versions.name is 'The name under which the version was published (evals benchmark mint); NULL for one that was only loaded.';
comment on column benchmark_versions.minted_at is 'When it was published.';
comment on column benchmark_versions.is_published is 'Whether the leaderboard is about this version: the one published last, or the one loaded last while none was ever published.';

create table comparisons (
    benchmark_version        varchar not null,
    judge                    varchar not null,
    judge_version            varchar not null,
    family                   varchar not null,
    experiment_a             varchar not null,
    experiment_b             varchar not null,
    model_a                  varchar not null,
    model_b                  varchar not null,
    run_ids_a                varchar[] not null,
    run_ids_b                varchar[] not null,
    items                    bigint not null,
    accuracy_a               double not null,
    accuracy_b               double not null,
    difference               double not null,
    difference_low           double,
    difference_high          double,
    bootstrap_low            double,
    bootstrap_high           double,
    standard_error           double,
    standard_error_clustered double,
    better                   bigint not null,
    worse                    bigint not null,
    test                     varchar not null,
    p_value                  double not null,
    p_adjusted               double not null,
    significant              boolean not null,
    pairs                    bigint not null,
    detectable               double,
    primary key (judge, judge_version, experiment_a, model_a, experiment_b, model_b)
);
comment on table comparisons is 'Every two entries of the leaderboard that can be compared, item by item: all models of an experiment, and all experiments of a model. Each side is the mean over its latest runs (run_ids), so that one reply more or less does not decide.';
comment on column comparisons.benchmark_version is 'The benchmark version.';
comment on column comparisons.judge is 'Whose verdicts are compared.';
comment on column comparisons.judge_version is 'The version of that judge.';
comment on column comparisons.family is 'models (same experiment) or experiments (same model): the pairs among which the p-values are corrected, per experiment or all together.';
comment on column comparisons.experiment_a is 'Experiment of the first side.';
comment on column comparisons.experiment_b is 'Experiment of the second side.';
comment on column comparisons.model_a is 'Model of the first side: of two models of the same experiment and scope, the one with the higher accuracy.';
comment on column comparisons.model_b is 'Model of the second side.';
comment on column comparisons.run_ids_a is 'Runs of the first side, the latest first.';
comment on column comparisons.run_ids_b is 'Runs of the second side.';
comment on column comparisons.items is 'Items that both were scored on; only these are compared.';
comment on column comparisons.accuracy_a is 'Mean score of the first side on these items.';
comment on column comparisons.accuracy_b is 'Mean score of the second side on these items.';
comment on column comparisons.difference is 'The first minus the second.';
comment on column comparisons.difference_low is 'Lower end of the 95 % interval of the difference: after Agresti and Min where the test is mcnemar, else that of the bootstrap. NULL if all differences are the same.';
comment on column comparisons.difference_high is 'Upper end of that interval.';
comment on column comparisons.bootstrap_low is 'Lower end of the 95 % percentile interval of the paired bootstrap over items, or over the clusters that a suite names.';
comment on column comparisons.bootstrap_high is 'Upper end of that interval.';
comment on column comparisons.standard_error is 'Standard error of the difference, from the differences item by item, or cluster by cluster where a suite names clusters; NULL for a single one.';
comment on column comparisons.standard_error_clustered is 'The same if items of one cluster are not independent; NULL below two clusters.';
comment on column comparisons.better is 'Items on which the first scored higher.';
comment on column comparisons.worse is 'Items on which the second scored higher.';
comment on column comparisons.test is 'mcnemar (exact; one reply per item, right or wrong) or sign_flip (several replies, parts of a score, or clusters that a suite names).';
comment on column comparisons.p_value is 'How likely a difference at least so large would be if both were equally good.';
comment on column comparisons.p_adjusted is 'The same corrected for the number of pairs (Holm).';
comment on column comparisons.significant is 'Whether p_adjusted is below 0.05.';
comment on column comparisons.pairs is 'How many pairs the correction is for.';
comment on column comparisons.detectable is 'The true difference that would be found significant in 80 % of such comparisons (5 %, two-sided, divided by the number of pairs): what is smaller can not be expected to show. NULL if no item tells the two apart.';

drop table leaderboard;
create table leaderboard_entries (
    rank               bigint not null,
    rank_low           bigint not null,
    rank_high          bigint not null,
    ties               varchar not null,
    model              varchar not null,
    experiment         varchar not null,
    scope              varchar not null,
    judge              varchar not null,
    judge_version      varchar not null,
    runs               bigint not null,
    samples            bigint not null,
    accuracy           double not null,
    accuracy_low       double not null,
    accuracy_high      double not null,
    standard_deviation double,
    text_accuracy      double,
    category_accuracy  map(varchar, double),
    judged             bigint not null,
    incomplete_runs    bigint not null,
    failed_replies     bigint not null,
    calibration_error  double,
    cost_usd           double,
    cost_estimated     boolean,
    latency_p50_s      double,
    mean_latency_s     double,
    mean_generation_s  double,
    run_id             varchar not null,
    run_ids            varchar[] not null,
    benchmark_version  varchar not null,
    simulated          boolean not null,
    opened_at          timestamp not null,
    primary key (model, experiment, judge, judge_version)
);
comment on table leaderboard_entries is 'What the view leaderboard shows, without the models'' names.';
comment on column leaderboard_entries.rank is 'Place by accuracy among the models of the same experiment, scope and judge.';
comment on column leaderboard_entries.rank_low is 'The best place it may have: 1 and one more for every model that is significantly better.';
comment on column leaderboard_entries.rank_high is 'The worst place it may have: the number of models less those that are significantly worse.';
comment on column leaderboard_entries.ties is 'Letters of the groups it belongs to: two models that share a letter can not be told apart (comparisons.significant).';
comment on column leaderboard_entries.model is 'The model.';
comment on column leaderboard_entries.experiment is 'The experiment.';
comment on column leaderboard_entries.scope is 'full, or text for models that see no images (or were asked text only): not the same questions, so ranked apart.';
comment on column leaderboard_entries.judge is 'Who judged; each judge has a leaderboard of its own.';
comment on column leaderboard_entries.judge_version is 'The version of that judge.';
comment on column leaderboard_entries.runs is 'How many runs the numbers are the mean of: the latest complete ones that were asked in the same way, at most 10.';
comment on column leaderboard_entries.samples is 'Replies per item in each of them.';
comment on column leaderboard_entries.accuracy is 'Mean score: over the replies to each item first, then over the items.';
comment on column leaderboard_entries.accuracy_low is 'Lower end of the 95 % interval (Wilson) for the choice of items.';
comment on column leaderboard_entries.accuracy_high is 'Upper end of that interval.';
comment on column leaderboard_entries.standard_deviation is 'Standard deviation of the runs'' accuracies: how much the model itself varies; NULL for a single run.';
comment on column leaderboard_entries.text_accuracy is 'Mean score of the items without an image: comparable between the scopes.';
comment on column leaderboard_entries.category_accuracy is 'Mean score by category.';
comment on column leaderboard_entries.judged is 'Number of items.';
comment on column leaderboard_entries.incomplete_runs is 'Runs of this version that are left out because something in them is missing, be it a verdict of this judge.';
comment on column leaderboard_entries.failed_replies is 'Replies that never came (outages and the like) in all its runs: counted here, and never as wrong.';
comment on column leaderboard_entries.calibration_error is 'As in metrics, all bins, of the latest run.';
comment on column leaderboard_entries.cost_usd is 'Mean cost of a run''s replies, one to each item: with several samples, that of one of them.';
comment on column leaderboard_entries.cost_estimated is 'Whether any of it was computed from the catalog''s prices.';
comment on column leaderboard_entries.latency_p50_s is 'Median seconds per reply, mean of the runs.';
comment on column leaderboard_entries.mean_latency_s is 'Mean seconds from request to complete reply.';
comment on column leaderboard_entries.mean_generation_s is 'Mean seconds from the first token to the last, where replies were streamed.';
comment on column leaderboard_entries.run_id is 'The latest of the runs.';
comment on column leaderboard_entries.run_ids is 'All of them, the latest first.';
comment on column leaderboard_entries.benchmark_version is 'The benchmark version.';
comment on column leaderboard_entries.simulated is 'Whether the model is simulated: then its score says nothing about any real model.';
comment on column leaderboard_entries.opened_at is 'When the latest run was opened.';

create view leaderboard as
select entries.*, model_catalog.display_name
from leaderboard_entries entries
left join model_catalog using (model);
comment on view leaderboard is 'One row per model, experiment and judge: the mean of its latest complete runs of the published benchmark version, full ones if there are any. Filtered and incomplete runs are not in it, and runs of other versions never mix with these.';

-- So far none was published by its name.
update benchmark_versions set is_published = is_current;
