-- How far judges can be trusted: verdicts given again, what people say, and the measures made of both.
create table rejudged (
    prediction_id  varchar not null,
    run_id         varchar not null,
    model          varchar not null,
    suite          varchar not null,
    item_id        varchar not null,
    sample         bigint not null,
    judge          varchar not null,
    judge_version  varchar not null,
    repeat         bigint not null,
    outcome        varchar not null,
    score          double,
    reason         varchar not null,
    raw_reply      varchar,
    cost_usd       double,
    cost_estimated boolean not null,
    launch         varchar,
    finished_at    timestamp not null,
    primary key (run_id, model, prediction_id, judge, judge_version, repeat)
);
comment on table rejudged is 'Verdicts that a judge gave again on replies it had judged before, to see whether it says the same. They are in no metric but those of judge_reliability.';
comment on column rejudged.prediction_id is 'The prediction that was judged again.';
comment on column rejudged.run_id is 'The run of the prediction.';
comment on column rejudged.model is 'The model that was asked.';
comment on column rejudged.suite is 'The item''s suite.';
comment on column rejudged.item_id is 'The item.';
comment on column rejudged.sample is 'Number of the sample.';
comment on column rejudged.judge is 'Who judged, as in judged.';
comment on column rejudged.judge_version is 'The version of that judge, the same as of its first verdict.';
comment on column rejudged.repeat is 'Number of the repetition, from 1; the first verdict stands in judged.';
comment on column rejudged.outcome is 'ok; judge_unparsable; or what went wrong on the way to the judge.';
comment on column rejudged.score is '1 right, 0 wrong; NULL when there was no verdict, which is asked for again.';
comment on column rejudged.reason is 'The judge''s reasoning; or why there is no score.';
comment on column rejudged.raw_reply is 'The judge''s reply as it came.';
comment on column rejudged.cost_usd is 'Cost of this repetition, earlier attempts included; NULL if unknown.';
comment on column rejudged.cost_estimated is 'Whether the cost was computed from the catalog''s prices.';
comment on column rejudged.launch is 'The Dagster run that asked.';
comment on column rejudged.finished_at is 'When the verdict was there.';

create table human_labels (
    line           bigint not null,
    suite          varchar,
    item_id        varchar not null,
    model          varchar,
    run_id         varchar,
    sample         bigint,
    labeller       varchar,
    correct        boolean not null,
    replies        bigint not null,
    answers        bigint not null,
    prediction_ids varchar[] not null
);
comment on table human_labels is 'What people say of replies, from the file of labels that was loaded last.';
comment on column human_labels.line is 'Line of the file.';
comment on column human_labels.suite is 'The item''s suite; NULL fits any.';
comment on column human_labels.item_id is 'The item.';
comment on column human_labels.model is 'The model that replied; NULL fits any.';
comment on column human_labels.run_id is 'The run of the reply, or the first characters of it; NULL fits any.';
comment on column human_labels.sample is 'Number of the sample; NULL fits any.';
comment on column human_labels.labeller is 'Who says so; NULL if the file does not tell.';
comment on column human_labels.correct is 'Whether the reply is right.';
comment on column human_labels.replies is 'How many replies it fits; 0 if there is none, and then it is not used.';
comment on column human_labels.answers is 'How many different answers these replies are; with more than 1 nobody knows which was meant, and it is not used.';
comment on column human_labels.prediction_ids is 'The replies that it is about, all of the same text; empty if it is not used.';

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
comment on column judge_reliability.measure is 'repeats: a judge against itself when asked again; between judges: two judges, or all judges, on the same replies; people: a judge against human_labels; own family: a judge on replies of its own vendor''s models.';
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
comment on column judge_reliability.alpha is 'Krippendorff''s alpha: agreement of three or more judges beyond chance, over replies that at least two of them scored; NULL if all verdicts are the same.';
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
