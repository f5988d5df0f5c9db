-- The tables that are computed from the recorded ones.

create table metrics (
    run_id                             varchar not null,
    model                              varchar not null,
    experiment                         varchar not null,
    benchmark_version                  varchar not null,
    scope                              varchar not null,
    simulated                          boolean not null,
    judge                              varchar,
    slice                              varchar not null,
    suite                              varchar,
    category                           varchar,
    input                              varchar,
    planned                            bigint not null,
    answered                           bigint not null,
    failed                             bigint not null,
    judged                             bigint not null,
    coverage                           double not null,
    complete                           boolean not null,
    incomplete_because                 varchar,
    correct                            double,
    accuracy                           double,
    accuracy_low                       double,
    accuracy_high                      double,
    wald_half_width                    double,
    accuracy_if_missing_wrong          double not null,
    accuracy_if_missing_right          double not null,
    with_confidence                    bigint not null,
    mean_confidence                    double,
    calibration_error                  double,
    calibration_error_last_bin_dropped double,
    input_tokens                       bigint,
    output_tokens                      bigint,
    reasoning_tokens                   bigint,
    cost_usd                           double,
    cost_estimated                     boolean,
    judge_cost_usd                     double,
    latency_p50_s                      double,
    latency_p95_s                      double,
    first_token_p50_s                  double,
    output_tokens_per_s                double,
    judged_at                          timestamp,
    judge_version                      varchar,
    items                              bigint not null,
    samples                            bigint not null,
    items_judged                       bigint not null,
    standard_error                     double,
    standard_error_clustered           double,
    clusters                           bigint not null,
    bootstrap_low                      double,
    bootstrap_high                     double,
    expected_calibration_error         double,
    brier_score                        double,
    cost_known_usd                     double,
    costs_unknown                      bigint not null
);
comment on table metrics is 'The numbers of each run, judge, judge version and slice over what was judged. The view metrics_strict holds complete runs only, metrics_moderate all of them with what they lack.';
comment on column metrics.run_id is 'The run.';
comment on column metrics.model is 'The model.';
comment on column metrics.experiment is 'The run''s experiment.';
comment on column metrics.benchmark_version is 'The run''s benchmark version.';
comment on column metrics.scope is 'The run''s scope: full, text or filtered.';
comment on column metrics.simulated is 'Whether a simulated model was asked.';
comment on column metrics.judge is 'The judge whose verdicts are counted; NULL while nothing is judged.';
comment on column metrics.slice is 'all: the whole run; suite: one suite; category: one category of a suite; input: items with or without an image.';
comment on column metrics.suite is 'The suite, in slices suite and category.';
comment on column metrics.category is 'The category, in the slice category.';
comment on column metrics.input is 'text or image, in the slice input.';
comment on column metrics.planned is 'Replies that were planned: items times samples.';
comment on column metrics.answered is 'Replies that say something about the model.';
comment on column metrics.failed is 'Replies that were asked for in vain (outage, rate limit and so on).';
comment on column metrics.judged is 'Replies with a score.';
comment on column metrics.coverage is 'judged / planned.';
comment on column metrics.complete is 'Whether every planned reply of the whole run has a score.';
comment on column metrics.incomplete_because is 'What the whole run lacks; NULL if it is complete.';
comment on column metrics.correct is 'Sum of the scores of all replies.';
comment on column metrics.accuracy is 'Mean over the items of the mean score of their replies; items without a score are left out; NULL if none has any.';
comment on column metrics.accuracy_low is 'Lower end of the 95 % interval: Wilson, for as many items as were judged. With several samples per item, for as many independent 0/1 scores as have the same standard error: no fewer than items_judged, no more than judged.';
comment on column metrics.accuracy_high is 'Upper end of that interval.';
comment on column metrics.wald_half_width is 'Half the width of the 95 % interval as the normal approximation has it (Wald), for the same number of scores as accuracy_low: the ± of other leaderboards. It is too narrow near 0 and 1.';
comment on column metrics.accuracy_if_missing_wrong is 'Accuracy if every reply without a score were wrong.';
comment on column metrics.accuracy_if_missing_right is 'Accuracy if every reply without a score were right.';
comment on column metrics.with_confidence is 'Judged replies that state a confidence.';
comment on column metrics.mean_confidence is 'Mean stated confidence of those.';
comment on column metrics.calibration_error is 'Root mean square difference of confidence and accuracy over bins of equal count (100 or a little more replies, in order of confidence), all bins; NULL below 100 replies with a confidence.';
comment on column metrics.calibration_error_last_bin_dropped is 'The same as published for Humanity''s Last Exam: bins of 100, the last one with the remainder, and its code leaves that one out of the sum; therefore 0 from 100 to 199 replies. For comparison with published numbers only.';
comment on column metrics.input_tokens is 'Tokens of all requests, of every attempt at a reply.';
comment on column metrics.output_tokens is 'Tokens of all replies, reasoning included, of every attempt.';
comment on column metrics.reasoning_tokens is 'Tokens of reasoning within output_tokens.';
comment on column metrics.cost_usd is 'Cost of all replies, every attempt included; NULL if it is not known of each of them (costs_unknown), for a part of the cost must not pass for the whole.';
comment on column metrics.cost_estimated is 'Whether any of cost_known_usd was computed from the catalog''s prices.';
comment on column metrics.judge_cost_usd is 'Cost of judging, of those verdicts whose cost is known.';
comment on column metrics.latency_p50_s is 'Median seconds per reply.';
comment on column metrics.latency_p95_s is 'Seconds within which 95 % of the replies were complete.';
comment on column metrics.first_token_p50_s is 'Median seconds to the first text.';
comment on column metrics.output_tokens_per_s is 'Median output tokens per second of a reply between its first text and its end, without reasoning that was not sent as text.';
comment on column metrics.judged_at is 'When the last verdict was there.';
comment on column metrics.judge_version is 'The version of that judge; NULL while nothing is judged.';
comment on column metrics.items is 'Items in the plan.';
comment on column metrics.samples is 'How often each of them is asked.';
comment on column metrics.items_judged is 'Items with a score for at least one of their replies.';
comment on column metrics.standard_error is 'Standard error of accuracy over independent items: standard deviation of the items'' mean scores / sqrt(items_judged); NULL below 2 items.';
comment on column metrics.standard_error_clustered is 'Standard error of accuracy if items of one cluster are not independent (cluster-robust, with the correction G / (G - 1) for G clusters); NULL below 2 clusters, and unreliable with few.';
comment on column metrics.clusters is 'Number of clusters among the judged items.';
comment on column metrics.bootstrap_low is 'Lower end of the 95 % percentile bootstrap interval over items; NULL in slices category and input, and where nothing is judged.';
comment on column metrics.bootstrap_high is 'Upper end of that interval.';
comment on column metrics.expected_calibration_error is 'Mean absolute difference of confidence and accuracy over the bins of calibration_error (ECE); NULL below 100 replies with a confidence.';
comment on column metrics.brier_score is 'Mean square difference of confidence and score of the replies that state a confidence; NULL if none does.';
comment on column metrics.cost_known_usd is 'Cost of those replies whose cost is known: the least that cost_usd can be. The same as cost_usd if costs_unknown is 0.';
comment on column metrics.costs_unknown is 'Replies that came, or used tokens, and whose cost is not known. Simulated and free models have a cost: 0.';

create table pass_at_k (
    run_id        varchar not null,
    model         varchar not null,
    judge         varchar not null,
    judge_version varchar not null,
    slice         varchar not null,
    suite         varchar,
    category      varchar,
    k             bigint not null,
    items         bigint not null,
    pass_at_k     double not null,
    pass_at_k_se  double,
    pass_hat_k    double not null,
    pass_hat_k_se double
);
comment on table pass_at_k is 'For runs with several samples per item: how likely k replies to an item hold a right one, and how likely all k are right. A reply is right if its score is 1.';
comment on column pass_at_k.run_id is 'The run.';
comment on column pass_at_k.model is 'The model.';
comment on column pass_at_k.judge is 'The judge whose verdicts are counted.';
comment on column pass_at_k.judge_version is 'The version of that judge.';
comment on column pass_at_k.slice is 'all: the whole run; suite: one suite; category: one category of a suite.';
comment on column pass_at_k.suite is 'The suite, in slices suite and category.';
comment on column pass_at_k.category is 'The category, in the slice category.';
comment on column pass_at_k.k is 'How many replies are drawn, from 1 to the run''s samples.';
comment on column pass_at_k.items is 'Items with at least k scored replies, which these numbers are over.';
comment on column pass_at_k.pass_at_k is 'Chance that at least one of k replies to an item is right (pass@k), without bias: mean over the items of 1 - C(n - c, k) / C(n, k), for c right of n scored replies.';
comment on column pass_at_k.pass_at_k_se is 'Its standard error over the items; NULL below 2 items.';
comment on column pass_at_k.pass_hat_k is 'Chance that all of k replies to an item are right (pass^k), without bias: mean over the items of C(c, k) / C(n, k).';
comment on column pass_at_k.pass_hat_k_se is 'Its standard error over the items; NULL below 2 items.';

create table calibration_bins (
    run_id          varchar not null,
    model           varchar not null,
    judge           varchar not null,
    judge_version   varchar not null,
    bin             bigint not null,
    size            bigint not null,
    confidence_low  double not null,
    confidence_high double not null,
    mean_confidence double not null,
    accuracy        double not null,
    accuracy_low    double not null,
    accuracy_high   double not null
);
comment on table calibration_bins is 'How right a run''s replies were at each level of stated confidence: the bins that calibration_error of the slice all is made of.';
comment on column calibration_bins.run_id is 'The run.';
comment on column calibration_bins.model is 'The model.';
comment on column calibration_bins.judge is 'The judge whose verdicts are counted.';
comment on column calibration_bins.judge_version is 'The version of that judge.';
comment on column calibration_bins.bin is 'Number of the bin in order of confidence, from 1.';
comment on column calibration_bins.size is 'Replies in the bin; the sizes of a run''s bins differ by at most one.';
comment on column calibration_bins.confidence_low is 'Lowest stated confidence in the bin.';
comment on column calibration_bins.confidence_high is 'Highest stated confidence in the bin.';
comment on column calibration_bins.mean_confidence is 'Mean stated confidence.';
comment on column calibration_bins.accuracy is 'Mean score.';
comment on column calibration_bins.accuracy_low is 'Lower end of the 95 % interval of the accuracy (Wilson).';
comment on column calibration_bins.accuracy_high is 'Upper end of that interval.';

create table comparisons (
    benchmark_version        varchar not null,
    judge                    varchar,
    judge_version            varchar,
    family                   varchar not null,
    experiment_a             varchar,
    experiment_b             varchar,
    model_a                  varchar,
    model_b                  varchar,
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

create table leaderboard_entries (
    rank               bigint not null,
    rank_low           bigint not null,
    rank_high          bigint not null,
    ties               varchar not null,
    model              varchar,
    experiment         varchar,
    scope              varchar not null,
    judge              varchar,
    judge_version      varchar,
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
    is_official        boolean not null default false,
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
comment on column leaderboard_entries.judge is 'Who judged; each judge, under each of its versions, has a leaderboard of its own.';
comment on column leaderboard_entries.judge_version is 'The version of that judge.';
comment on column leaderboard_entries.runs is 'How many runs the numbers are the mean of: the latest complete ones that were asked in the same way, at most 10.';
comment on column leaderboard_entries.samples is 'Replies per item in each of them.';
comment on column leaderboard_entries.accuracy is 'Mean score: over the replies to each item first, then over the items.';
comment on column leaderboard_entries.accuracy_low is 'Lower end of the 95 % interval (Wilson) for the choice of items.';
comment on column leaderboard_entries.accuracy_high is 'Upper end of that interval.';
comment on column leaderboard_entries.standard_deviation is 'Standard deviation of the runs'' accuracies: how much the model itself varies; NULL for a single run.';
comment on column leaderboard_entries.text_accuracy is 'Mean score of the items without an image: comparable between the scopes.';
comment on column leaderboard_entries.category_accuracy is 'Mean score by category; by suite/category where the benchmark version has several suites.';
comment on column leaderboard_entries.judged is 'Number of items.';
comment on column leaderboard_entries.incomplete_runs is 'Runs of this version that are left out because something in them is missing, be it a verdict of this judge.';
comment on column leaderboard_entries.failed_replies is 'Replies that never came (outages and the like) in all its runs: counted here, and never as wrong.';
comment on column leaderboard_entries.calibration_error is 'As in metrics, all bins, of the latest run.';
comment on column leaderboard_entries.cost_usd is 'Mean cost of a run''s replies, one to each item (with several samples, that of one of them), over those of the runs whose cost is known as a whole; NULL if there is none.';
comment on column leaderboard_entries.cost_estimated is 'Whether any of it was computed from the catalog''s prices.';
comment on column leaderboard_entries.latency_p50_s is 'Median seconds per reply, mean of the runs.';
comment on column leaderboard_entries.mean_latency_s is 'Mean seconds from request to complete reply.';
comment on column leaderboard_entries.mean_generation_s is 'Mean seconds from the first token to the last, where replies were streamed.';
comment on column leaderboard_entries.run_id is 'The latest of the runs.';
comment on column leaderboard_entries.run_ids is 'All of them, the latest first.';
comment on column leaderboard_entries.benchmark_version is 'The benchmark version.';
comment on column leaderboard_entries.simulated is 'Whether the model is simulated: then its score says nothing about any real model.';
comment on column leaderboard_entries.opened_at is 'When the latest run was opened.';
comment on column leaderboard_entries.is_official is 'Whether this is the official version of its judge, one of each: with the judge''s prompt of the benchmark version (verdicts from before prompts were kept pass for such), then the one that scored the most models completely, then the one last at work. What is printed and plotted is official.';

create table judge_reliability (
    measure               varchar not null,
    judge                 varchar not null,
    judge_version         varchar,
    other_judge           varchar,
    other_judge_version   varchar,
    labeller              varchar,
    models                varchar[],
    items                 bigint not null,
    verdicts              bigint not null,
    rate_correct          double,
    other_rate_correct    double,
    agreement             double,
    base_rate             double,
    kappa                 double,
    alpha                 double,
    flicker_rate          double,
    flicker_low           double,
    flicker_high          double,
    pairwise_disagreement double,
    tp                    bigint,
    fp                    bigint,
    tn                    bigint,
    fn                    bigint,
    tpr                   double,
    tpr_low               double,
    tpr_high              double,
    tnr                   double,
    tnr_low               double,
    tnr_high              double,
    shared_items          bigint,
    shared_rate_correct   double,
    warning               varchar
);
comment on table judge_reliability is 'How far judges can be trusted, one row per measure and whom it is about; what does not apply to a measure, or can not be told, is NULL. Replies that nobody had to grade, since the model had failed to answer, are left out.';
comment on column judge_reliability.measure is 'repeats: a judge against itself when asked again; between judges: two judges, or all judges, on the same replies, verdicts that one grader (such as the rules) gave for both left out; people: a judge against human_labels; own family: a judge on replies of its own vendor''s models.';
comment on column judge_reliability.judge is 'The judge; all judges in the row over all of them.';
comment on column judge_reliability.judge_version is 'The version of that judge; NULL in the row over all judges.';
comment on column judge_reliability.other_judge is 'The other one of two judges.';
comment on column judge_reliability.other_judge_version is 'The version of the other judge.';
comment on column judge_reliability.labeller is 'The person whose labels are counted; NULL in the row over all labels.';
comment on column judge_reliability.models is 'Own family: the models whose replies the judge graded.';
comment on column judge_reliability.items is 'Replies that were counted; for people, labels.';
comment on column judge_reliability.verdicts is 'Verdicts of judges on them, labels of people not counted in.';
comment on column judge_reliability.rate_correct is 'Share of the verdicts (of the judge, or in the row over all judges of all) that say correct.';
comment on column judge_reliability.other_rate_correct is 'The same share by the other judge; by people; for own family, by judges of other families on shared_items.';
comment on column judge_reliability.agreement is 'Share of the replies on which both say the same.';
comment on column judge_reliability.base_rate is 'Share of the commoner one of correct and wrong: among the verdicts, or for people among the labels. Who always says that agrees as often.';
comment on column judge_reliability.kappa is 'Cohen''s kappa: agreement beyond chance, 1 at best; NULL if both only ever said one and the same.';
comment on column judge_reliability.alpha is 'Krippendorff''s alpha: agreement of three or more judges beyond chance, over replies that at least two graders scored; rules before a model are left out where that model or the rules judge by themselves too. NULL if all verdicts are the same.';
comment on column judge_reliability.flicker_rate is 'Share of the replies whose verdicts, the first one included, are not all the same.';
comment on column judge_reliability.flicker_low is 'Lower end of its 95 % interval (Wilson).';
comment on column judge_reliability.flicker_high is 'Upper end of that interval.';
comment on column judge_reliability.pairwise_disagreement is 'Chance that two verdicts of the judge on one reply differ.';
comment on column judge_reliability.tp is 'Labels and verdicts that both say correct.';
comment on column judge_reliability.fp is 'The judge says correct, the label wrong.';
comment on column judge_reliability.tn is 'Both say wrong.';
comment on column judge_reliability.fn is 'The judge says wrong, the label correct.';
comment on column judge_reliability.tpr is 'Share of what people find correct that the judge accepts.';
comment on column judge_reliability.tpr_low is 'Lower end of its 95 % interval (Wilson).';
comment on column judge_reliability.tpr_high is 'Upper end of that interval.';
comment on column judge_reliability.tnr is 'Share of what people find wrong that the judge rejects.';
comment on column judge_reliability.tnr_low is 'Lower end of its 95 % interval (Wilson).';
comment on column judge_reliability.tnr_high is 'Upper end of that interval.';
comment on column judge_reliability.shared_items is 'Own family: replies among items that a judge of another family scored too.';
comment on column judge_reliability.shared_rate_correct is 'Own family: rate_correct over shared_items, to be held against other_rate_correct; NULL if there are none.';
comment on column judge_reliability.warning is 'Own family: what to mind, in a sentence.';

create table leaderboard_slices (
    model         varchar not null,
    experiment    varchar not null,
    scope         varchar not null,
    judge         varchar not null,
    judge_version varchar not null,
    is_official   boolean not null,
    suite         varchar not null,
    category      varchar,
    judged        bigint not null,
    accuracy      double not null,
    accuracy_low  double not null,
    accuracy_high double not null
);
comment on table leaderboard_slices is 'What the leaderboard is over one suite, or over one category of it: the mean of the same runs. Ranks are for the whole leaderboard only.';
comment on column leaderboard_slices.model is 'The model.';
comment on column leaderboard_slices.experiment is 'The experiment.';
comment on column leaderboard_slices.scope is 'full, or text for models that see no images (or were asked text only).';
comment on column leaderboard_slices.judge is 'Who judged.';
comment on column leaderboard_slices.judge_version is 'The version of that judge.';
comment on column leaderboard_slices.is_official is 'Whether this is the official version of its judge, as in leaderboard.';
comment on column leaderboard_slices.suite is 'The suite.';
comment on column leaderboard_slices.category is 'The category; NULL for the whole suite.';
comment on column leaderboard_slices.judged is 'Number of items.';
comment on column leaderboard_slices.accuracy is 'Mean score: over the replies to each item first, then over the items.';
comment on column leaderboard_slices.accuracy_low is 'Lower end of the 95 % interval (Wilson) for the choice of items.';
comment on column leaderboard_slices.accuracy_high is 'Upper end of that interval.';
