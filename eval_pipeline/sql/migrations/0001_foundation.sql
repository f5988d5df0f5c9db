-- The tables and views people query, named like the assets, each with its meaning.
-- Times are UTC. Shares (accuracy, confidence, coverage) run from 0 to 1. Money is in US dollars.

create table benchmark_versions (
    benchmark_version  varchar not null,
    suite              varchar not null,
    suite_version      varchar not null,
    items              bigint not null,
    answer_prompt_hash varchar not null,
    judge_prompt_hash  varchar not null,
    protocol           bigint not null,
    first_loaded_at    timestamp not null,
    last_loaded_at     timestamp not null,
    is_current         boolean not null,
    primary key (benchmark_version, suite)
);
comment on table benchmark_versions is 'Every benchmark version that was ever loaded, with the suites it is made of. Runs of different versions are never compared.';
comment on column benchmark_versions.benchmark_version is 'Hash of everything that decides what a pass means: items, prompts, judge prompt, protocol number.';
comment on column benchmark_versions.suite is 'Name of the suite in the settings.';
comment on column benchmark_versions.suite_version is 'Hash of the suite''s items.';
comment on column benchmark_versions.items is 'Number of items in the suite.';
comment on column benchmark_versions.answer_prompt_hash is 'Hash of the system prompt that models are asked with by default.';
comment on column benchmark_versions.judge_prompt_hash is 'Hash of the judge''s prompt.';
comment on column benchmark_versions.protocol is 'Number that is raised when the code changes what a pass means.';
comment on column benchmark_versions.first_loaded_at is 'When this version was loaded first.';
comment on column benchmark_versions.last_loaded_at is 'When this version was loaded last.';
comment on column benchmark_versions.is_current is 'Whether this is the version loaded last.';

create table items (
    suite         varchar not null,
    suite_version varchar not null,
    item_id       varchar not null,
    question      varchar not null,
    image         varchar,
    answer        varchar not null,
    answer_type   varchar not null,
    category      varchar not null,
    rationale     varchar not null,
    raw_subject   varchar not null,
    primary key (suite, suite_version, item_id)
);
comment on table items is 'Every item of every suite, in all versions that were ever loaded.';
comment on column items.suite is 'Name of the suite in the settings.';
comment on column items.suite_version is 'Hash of all items of the suite, this one included.';
comment on column items.item_id is 'Identifier, unique in its suite.';
comment on column items.question is 'The question as the models read it.';
comment on column items.image is 'The image that belongs to the question, as a data URI; NULL if there is none.';
comment on column items.answer is 'The reference answer.';
comment on column items.answer_type is 'exactMatch or multipleChoice.';
comment on column items.category is 'Field of knowledge.';
comment on column items.rationale is 'Why the reference answer is right.';
comment on column items.raw_subject is 'The subject in finer words than the category.';

create view dataset as
select items.*, benchmark_versions.benchmark_version
from items
join benchmark_versions using (suite, suite_version)
where benchmark_versions.is_current;
comment on view dataset is 'Every item of every suite of the current benchmark version.';

create table model_catalog (
    model             varchar primary key,
    gateway           varchar not null,
    request_name      varchar not null,
    vendor            varchar not null,
    name              varchar not null,
    provider          varchar,
    display_name      varchar not null,
    sees_images       boolean not null,
    input_modalities  varchar[] not null,
    context_length    bigint,
    max_output_tokens bigint,
    prompt_price      double,
    completion_price  double,
    cached_price      double,
    request_price     double,
    system_role       boolean not null,
    temperature       boolean not null,
    json_schema       boolean not null,
    streaming         boolean not null,
    simulated         boolean not null,
    selected          boolean not null,
    listed            boolean not null,
    created_at        timestamp,
    first_seen_at     timestamp not null,
    last_seen_at      timestamp not null
);
comment on table model_catalog is 'Every model that a gateway ever offered, as it was described last.';
comment on column model_catalog.model is 'The model''s id: vendor/name, optionally :provider. Also its partition in Dagster.';
comment on column model_catalog.gateway is 'Name of the gateway in the settings.';
comment on column model_catalog.request_name is 'What the gateway calls the model in a request.';
comment on column model_catalog.vendor is 'Who made the model.';
comment on column model_catalog.name is 'The model''s name without vendor and provider.';
comment on column model_catalog.provider is 'Who serves the model, if the id pins that; otherwise NULL.';
comment on column model_catalog.display_name is 'The name for people.';
comment on column model_catalog.sees_images is 'Whether image questions can be asked.';
comment on column model_catalog.input_modalities is 'What the model can read.';
comment on column model_catalog.context_length is 'Tokens of input and output together.';
comment on column model_catalog.max_output_tokens is 'Most tokens of one reply.';
comment on column model_catalog.prompt_price is 'US dollars per input token.';
comment on column model_catalog.completion_price is 'US dollars per output token.';
comment on column model_catalog.cached_price is 'US dollars per input token that is read from the cache.';
comment on column model_catalog.request_price is 'US dollars per request.';
comment on column model_catalog.system_role is 'Whether the model takes a system message.';
comment on column model_catalog.temperature is 'Whether the model takes a temperature.';
comment on column model_catalog.json_schema is 'Whether replies can be bound to a JSON schema.';
comment on column model_catalog.streaming is 'Whether replies can be streamed.';
comment on column model_catalog.simulated is 'Whether this is a simulated model of the demo gateway: its scores say nothing about any real model.';
comment on column model_catalog.selected is 'Whether the settings selected it when it was seen last.';
comment on column model_catalog.listed is 'Whether its gateway still listed it the last time it was asked.';
comment on column model_catalog.created_at is 'When the model appeared, as the gateway says.';
comment on column model_catalog.first_seen_at is 'When it was seen first.';
comment on column model_catalog.last_seen_at is 'When it was seen last.';

create table runs (
    run_id            varchar not null,
    model             varchar not null,
    experiment        varchar not null,
    benchmark_version varchar not null,
    scope             varchar not null,
    planned           bigint not null,
    plan_filter       json not null,
    parameters        json not null,
    simulated         boolean not null,
    opened_at         timestamp not null,
    primary key (run_id, model)
);
comment on table runs is 'One row per evaluation of one model over a plan of items under one experiment.';
comment on column runs.run_id is 'Id of the Dagster run that opened it; one Dagster run may open runs of several models.';
comment on column runs.model is 'The model that is evaluated.';
comment on column runs.experiment is 'The named variation of how models are asked.';
comment on column runs.benchmark_version is 'The benchmark version that is measured.';
comment on column runs.scope is 'full: every item; text: every item without an image; filtered: a part chosen by a filter, which never enters the leaderboard.';
comment on column runs.planned is 'Number of items in the plan.';
comment on column runs.plan_filter is 'The filter that the plan was made with.';
comment on column runs.parameters is 'How the model is asked: temperature, token limit, hash of the system prompt and so on.';
comment on column runs.simulated is 'Whether a simulated model was asked.';
comment on column runs.opened_at is 'When the run was opened.';

create table plans (
    run_id  varchar not null,
    model   varchar not null,
    suite   varchar not null,
    item_id varchar not null
);
comment on table plans is 'The items that each run covers.';
comment on column plans.run_id is 'The run.';
comment on column plans.model is 'The run''s model.';
comment on column plans.suite is 'The item''s suite.';
comment on column plans.item_id is 'The item.';

create table predictions (
    prediction_id    varchar not null,
    run_id           varchar not null,
    model            varchar not null,
    suite            varchar not null,
    item_id          varchar not null,
    sample           bigint not null,
    outcome          varchar not null,
    is_result        boolean not null,
    answer           varchar,
    reasoning        varchar,
    error            varchar,
    finish_reason    varchar,
    input_tokens     bigint,
    output_tokens    bigint,
    reasoning_tokens bigint,
    cached_tokens    bigint,
    cost_usd         double,
    cost_estimated   boolean not null,
    latency_s        double,
    first_token_s    double,
    attempts         bigint not null,
    generation_id    varchar,
    served_by        varchar,
    model_reported   varchar,
    request_hash     varchar not null,
    carried_from     varchar,
    finished_at      timestamp not null,
    primary key (run_id, model, suite, item_id, sample)
);
comment on table predictions is 'The last reply to each item of each run, or why there is none.';
comment on column predictions.prediction_id is 'Identifier of this very reply; judgements refer to it.';
comment on column predictions.run_id is 'The run.';
comment on column predictions.model is 'The model that was asked.';
comment on column predictions.suite is 'The item''s suite.';
comment on column predictions.item_id is 'The item.';
comment on column predictions.sample is 'Number of the sample, if an item is asked several times in a run; 0 is the first.';
comment on column predictions.outcome is 'ok; refused, truncated or content_filter (the model''s own failing); or what went wrong on the way: empty, rate_limited, timeout, server_error, connection_error, cut_stream, invalid_reply, bad_request, auth, forbidden, no_credit, unknown_model.';
comment on column predictions.is_result is 'Whether the outcome says something about the model. If not, the item is asked again and never scored 0.';
comment on column predictions.answer is 'The reply''s text.';
comment on column predictions.reasoning is 'The reasoning text, where the API gives it apart from the answer.';
comment on column predictions.error is 'Why there is no reply, in the server''s words.';
comment on column predictions.finish_reason is 'Why the model stopped, as the server says.';
comment on column predictions.input_tokens is 'Tokens of the request.';
comment on column predictions.output_tokens is 'Tokens of the reply, reasoning included.';
comment on column predictions.reasoning_tokens is 'Tokens of reasoning within output_tokens.';
comment on column predictions.cached_tokens is 'Tokens of the request that were read from the cache.';
comment on column predictions.cost_usd is 'Cost of the item in this run, earlier attempts included; NULL if neither the gateway nor its prices tell.';
comment on column predictions.cost_estimated is 'Whether the cost was computed from the catalog''s prices instead of being reported by the gateway.';
comment on column predictions.latency_s is 'Seconds from the request to the end of the reply, of the attempt that succeeded.';
comment on column predictions.first_token_s is 'Seconds from the request to the first text.';
comment on column predictions.attempts is 'How many requests were made.';
comment on column predictions.generation_id is 'The gateway''s id of the reply.';
comment on column predictions.served_by is 'Who served the reply.';
comment on column predictions.model_reported is 'The model''s name and version as the reply states it.';
comment on column predictions.request_hash is 'Hash of everything that was asked: model, messages, parameters.';
comment on column predictions.carried_from is 'The run that asked and paid, if the reply was taken over from it: same request, older benchmark version. NULL if it was asked in this run.';
comment on column predictions.finished_at is 'When the reply was complete.';

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
    primary key (run_id, model, suite, item_id, sample, judge)
);
comment on table judged is 'The last verdict of each judge, under its newest prompt, on each prediction that still stands.';
comment on column judged.prediction_id is 'The prediction that was judged.';
comment on column judged.run_id is 'The run.';
comment on column judged.model is 'The model that was asked.';
comment on column judged.suite is 'The item''s suite.';
comment on column judged.item_id is 'The item.';
comment on column judged.sample is 'Number of the sample.';
comment on column judged.judge is 'The model that judged.';
comment on column judged.judge_version is 'Hash of the judge''s prompt, reply schema and parameters.';
comment on column judged.outcome is 'ok, judge_unparsable, or what went wrong on the way to the judge.';
comment on column judged.score is '1 right, 0 wrong; NULL when nobody could tell, which is never counted as wrong.';
comment on column judged.reason is 'The judge''s reasoning, or why there is no score.';
comment on column judged.extracted_answer is 'The final answer that the judge found in the reply.';
comment on column judged.confidence is 'The confidence that the reply states, from 0 to 1; NULL if it states none.';
comment on column judged.raw_reply is 'The judge''s reply as it came.';
comment on column judged.input_tokens is 'Tokens of the request to the judge.';
comment on column judged.output_tokens is 'Tokens of the judge''s reply.';
comment on column judged.cost_usd is 'Cost of judging by this judge, earlier attempts included; NULL if unknown.';
comment on column judged.cost_estimated is 'Whether the cost was computed from the catalog''s prices.';
comment on column judged.latency_s is 'Seconds until the judge''s reply was complete.';
comment on column judged.attempts is 'How many requests were made to the judge; 0 if none was needed.';
comment on column judged.finished_at is 'When the verdict was there.';

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
    judged_at                          timestamp
);
comment on table metrics is 'The numbers of each run, judge and slice over what was judged (moderate). The view metrics_strict holds complete runs only.';
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
comment on column metrics.planned is 'Items in the plan.';
comment on column metrics.answered is 'Items with a reply that says something about the model.';
comment on column metrics.failed is 'Items that were asked in vain (outage, rate limit and so on).';
comment on column metrics.judged is 'Items with a score.';
comment on column metrics.coverage is 'judged / planned.';
comment on column metrics.complete is 'Whether every planned item of the whole run has a score.';
comment on column metrics.incomplete_because is 'What the whole run lacks; NULL if it is complete.';
comment on column metrics.correct is 'Sum of the scores.';
comment on column metrics.accuracy is 'Mean score of the judged items; NULL if none is.';
comment on column metrics.accuracy_low is 'Lower end of the 95 % interval (Wilson).';
comment on column metrics.accuracy_high is 'Upper end of the 95 % interval (Wilson).';
comment on column metrics.wald_half_width is 'Half the width of the 95 % interval as the normal approximation has it (Wald): the ± of other leaderboards. It is too narrow near 0 and 1.';
comment on column metrics.accuracy_if_missing_wrong is 'Accuracy if every item without a score were wrong.';
comment on column metrics.accuracy_if_missing_right is 'Accuracy if every item without a score were right.';
comment on column metrics.with_confidence is 'Judged items whose reply states a confidence.';
comment on column metrics.mean_confidence is 'Mean stated confidence of those.';
comment on column metrics.calibration_error is 'Root mean square difference of confidence and accuracy over bins of 100 items in order of confidence, all bins; NULL below 100 items.';
comment on column metrics.calibration_error_last_bin_dropped is 'The same as published for Humanity''s Last Exam, whose code leaves the last bin out of the sum; therefore 0 from 100 to 199 items. For comparison with published numbers only.';
comment on column metrics.input_tokens is 'Tokens of all requests.';
comment on column metrics.output_tokens is 'Tokens of all replies.';
comment on column metrics.reasoning_tokens is 'Tokens of reasoning within output_tokens.';
comment on column metrics.cost_usd is 'Cost of all replies whose cost is known.';
comment on column metrics.cost_estimated is 'Whether any of it was computed from the catalog''s prices.';
comment on column metrics.judge_cost_usd is 'Cost of judging.';
comment on column metrics.latency_p50_s is 'Median seconds per reply.';
comment on column metrics.latency_p95_s is 'Seconds within which 95 % of the replies were complete.';
comment on column metrics.first_token_p50_s is 'Median seconds to the first text.';
comment on column metrics.output_tokens_per_s is 'Median output tokens per second between the first text and the end.';
comment on column metrics.judged_at is 'When the last verdict was there.';

create view metrics_strict as select * from metrics where complete;
comment on view metrics_strict is 'The numbers of complete runs only: every planned item has a score.';

create table leaderboard (
    rank                 bigint not null,
    model                varchar not null,
    display_name         varchar,
    experiment           varchar not null,
    scope                varchar not null,
    accuracy             double not null,
    accuracy_low         double not null,
    accuracy_high        double not null,
    text_accuracy        double,
    judged               bigint not null,
    calibration_error    double,
    cost_usd             double,
    latency_p50_s        double,
    judge                varchar not null,
    run_id               varchar not null,
    benchmark_version    varchar not null,
    simulated            boolean not null,
    opened_at            timestamp not null,
    primary key (model, experiment)
);
comment on table leaderboard is 'One row per model and experiment: its latest complete run of the current benchmark version, a full one if there is any. Filtered and incomplete runs are not in it.';
comment on column leaderboard.rank is 'Place among the models of the same experiment, scope and judge.';
comment on column leaderboard.model is 'The model.';
comment on column leaderboard.display_name is 'The model''s name for people.';
comment on column leaderboard.experiment is 'The experiment.';
comment on column leaderboard.scope is 'full, or text for models that see no images (or were asked text only): not the same questions, so ranked apart.';
comment on column leaderboard.accuracy is 'Mean score of all items of the run.';
comment on column leaderboard.accuracy_low is 'Lower end of the 95 % interval (Wilson).';
comment on column leaderboard.accuracy_high is 'Upper end of the 95 % interval (Wilson).';
comment on column leaderboard.text_accuracy is 'Mean score of the items without an image: comparable between the scopes.';
comment on column leaderboard.judged is 'Number of items.';
comment on column leaderboard.calibration_error is 'As in metrics, all bins.';
comment on column leaderboard.cost_usd is 'Cost of the run''s replies.';
comment on column leaderboard.latency_p50_s is 'Median seconds per reply.';
comment on column leaderboard.judge is 'Who judged.';
comment on column leaderboard.run_id is 'The run.';
comment on column leaderboard.benchmark_version is 'The benchmark version.';
comment on column leaderboard.simulated is 'Whether the model is simulated: then its score says nothing about any real model.';
comment on column leaderboard.opened_at is 'When the run was opened.';
