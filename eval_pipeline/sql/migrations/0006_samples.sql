-- Several samples per item, verdicts by judge and judge version, errors by cluster, pass@k, calibration.
-- What is derived is emptied or made anew; verdicts are moved over, for a primary key can not be changed.
drop view dataset;
alter table items add column cluster varchar;
alter table items alter column cluster type varchar using category;
alter table items alter column cluster set not null;
comment on column items.cluster is 'What groups items that are not independent, such as the passage they share: the column that the suite names as its cluster, else the category.';
alter table items add column is_clustered boolean default false;
comment on column items.is_clustered is 'Whether the suite names a cluster: comparisons then draw its items as a whole.';
create view dataset as
select items.*, benchmark_versions.benchmark_version
from items
join benchmark_versions using (suite, suite_version)
where benchmark_versions.is_current;
comment on view dataset is 'Every item of every suite of the current benchmark version.';

alter table runs add column samples bigint default 1;
alter table runs alter column samples set not null;
comment on column runs.samples is 'How often each item of the plan is asked.';

comment on column predictions.outcome is 'ok; refused, truncated, truncated_thinking or content_filter (the model''s own failing); or what went wrong on the way: empty, rate_limited, timeout, server_error, connection_error, cut_stream, invalid_reply, bad_request, context_too_long, auth, forbidden, no_credit, unknown_model.';

create table judged_before as from judged;
drop table judged;
create table judged (
    prediction_id    varchar not null,
    run_id           varchar not null,
    model            varchar not null,
    suite            varchar not null,
    item_id          varchar not null,
    sample           bigint not null,
    judge            varchar not null,
    judge_version    varchar not null,
    outcome          varchar not null,
    score            double,
    reason           varchar not null,
    extracted_answer varchar,
    confidence       double,
    raw_reply        varchar,
    input_tokens     bigint,
    output_tokens    bigint,
    cost_usd         double,
    cost_estimated   boolean not null,
    latency_s        double,
    attempts         bigint not null,
    finished_at      timestamp not null,
    carried_from     varchar,
    primary key (run_id, model, suite, item_id, sample, judge, judge_version)
);
comment on table judged is 'The verdict of each judge, under each of its versions, that stands on each prediction that still stands.';
comment on column judged.prediction_id is 'The prediction that was judged.';
comment on column judged.run_id is 'The run.';
comment on column judged.model is 'The model that was asked.';
comment on column judged.suite is 'The item''s suite.';
comment on column judged.item_id is 'The item.';
comment on column judged.sample is 'Number of the sample.';
comment on column judged.judge is 'Who judged: a model, rules, or rules before a model.';
comment on column judged.judge_version is 'Hash of the judge''s prompt, reply schema and parameters.';
comment on column judged.outcome is 'ok, undecided, judge_unparsable, or what went wrong on the way to the judge.';
comment on column judged.score is '1 right, 0 wrong; NULL when nobody could tell, which is never counted as wrong.';
comment on column judged.reason is 'The judge''s reasoning, or why there is no score.';
comment on column judged.extracted_answer is 'The final answer that the judge found in the reply.';
comment on column judged.confidence is 'The confidence that the reply states, from 0 to 1; NULL if it states none.';
comment on column judged.raw_reply is 'The judge''s reply as it came.';
comment on column judged.input_tokens is 'Tokens of the request to the judge.';
comment on column judged.output_tokens is 'Tokens of the judge''s reply.';
comment on column judged.cost_usd is 'Cost of judging by this judge under this version, earlier attempts included; NULL if unknown.';
comment on column judged.cost_estimated is 'Whether the cost was computed from the catalog''s prices.';
comment on column judged.latency_s is 'Seconds until the judge''s reply was complete.';
comment on column judged.attempts is 'How many requests were made to the judge; 0 if none was needed.';
comment on column judged.finished_at is 'When the verdict was there.';
comment on column judged.carried_from is 'The earlier run that this verdict was taken over from; NULL if it was asked for here.';

drop view metrics_strict;
delete from metrics;
alter table metrics add column judge_version varchar;
alter table metrics add column items bigint;
alter table metrics add column samples bigint;
alter table metrics add column items_judged bigint;
alter table metrics add column standard_error double;
alter table metrics add column standard_error_clustered double;
alter table metrics add column clusters bigint;
alter table metrics add column bootstrap_low double;
alter table metrics add column bootstrap_high double;
alter table metrics add column expected_calibration_error double;
alter table metrics add column brier_score double;
alter table metrics alter column items set not null;
alter table metrics alter column samples set not null;
alter table metrics alter column items_judged set not null;
alter table metrics alter column clusters set not null;
comment on table metrics is 'The numbers of each run, judge, judge version and slice over what was judged. The view metrics_strict holds complete runs only, metrics_moderate all of them with what they lack.';
comment on column metrics.judge_version is 'The version of that judge; NULL while nothing is judged.';
comment on column metrics.items is 'Items in the plan.';
comment on column metrics.samples is 'How often each of them is asked.';
comment on column metrics.planned is 'Replies that were planned: items times samples.';
comment on column metrics.answered is 'Replies that say something about the model.';
comment on column metrics.failed is 'Replies that were asked for in vain (outage, rate limit and so on).';
comment on column metrics.judged is 'Replies with a score.';
comment on column metrics.items_judged is 'Items with a score for at least one of their replies.';
comment on column metrics.complete is 'Whether every planned reply of the whole run has a score.';
comment on column metrics.correct is 'Sum of the scores of all replies.';
comment on column metrics.accuracy is 'Mean over the items of the mean score of their replies; items without a score are left out; NULL if none has any.';
comment on column metrics.accuracy_low is 'Lower end of the 95 % interval: Wilson, for as many items as were judged. With several samples per item, for as many independent 0/1 scores as have the same standard error: no fewer than items_judged, no more than judged.';
comment on column metrics.accuracy_high is 'Upper end of that interval.';
comment on column metrics.wald_half_width is 'Half the width of the 95 % interval as the normal approximation has it (Wald), for the same number of scores as accuracy_low: the ± of other leaderboards. It is too narrow near 0 and 1.';
comment on column metrics.accuracy_if_missing_wrong is 'Accuracy if every reply without a score were wrong.';
comment on column metrics.accuracy_if_missing_right is 'Accuracy if every reply without a score were right.';
comment on column metrics.standard_error is 'Standard error of accuracy over independent items: standard deviation of the items'' mean scores / sqrt(items_judged); NULL below 2 items.';
comment on column metrics.standard_error_clustered is 'Standard error of accuracy if items of one cluster are not independent (cluster-robust, with the correction G / (G - 1) for G clusters); NULL below 2 clusters, and unreliable with few.';
comment on column metrics.clusters is 'Number of clusters among the judged items.';
comment on column metrics.bootstrap_low is 'Lower end of the 95 % percentile bootstrap interval over items; NULL in slices category and input, and where nothing is judged.';
comment on column metrics.bootstrap_high is 'Upper end of that interval.';
comment on column metrics.with_confidence is 'Judged replies that state a confidence.';
comment on column metrics.mean_confidence is 'Mean stated confidence of those.';
comment on column metrics.calibration_error is 'Root mean square difference of confidence and accuracy over bins of equal count (100 or a little more replies, in order of confidence), all bins; NULL below 100 replies with a confidence.';
comment on column metrics.calibration_error_last_bin_dropped is 'The same as published for Humanity''s Last Exam: bins of 100, the last one with the remainder, and its code leaves that one out of the sum; therefore 0 from 100 to 199 replies. For comparison with published numbers only.';
comment on column metrics.expected_calibration_error is 'Mean absolute difference of confidence and accuracy over the bins of calibration_error (ECE); NULL below 100 replies with a confidence.';
comment on column metrics.brier_score is 'Mean square difference of confidence and score of the replies that state a confidence; NULL if none does.';
create view metrics_strict as select * from metrics where complete;
comment on view metrics_strict is 'The numbers of complete runs only: every planned reply has a score.';
create view metrics_moderate as select * from metrics;
comment on view metrics_moderate is 'The numbers of every run over what was judged: read them with coverage, incomplete_because, and the bounds that what is missing allows (accuracy_if_missing_wrong, accuracy_if_missing_right).';

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
comment on column predictions.carried_from is 'The earlier run that asked and paid, if the answer was taken over from it: same request. NULL if it was asked for here.';

insert into judged by name from judged_before;
drop table judged_before;
