-- The tables that are read from the journal, named like the assets, each with its meaning.
-- Times are UTC. Shares (accuracy, confidence, coverage) run from 0 to 1. Money is in US dollars.

create table benchmark_versions (
    benchmark_version  varchar,
    suite              varchar,
    suite_version      varchar not null,
    items              bigint not null,
    answer_prompt_hash varchar not null,
    judge_prompt_hash  varchar not null,
    protocol           bigint not null,
    first_loaded_at    timestamp not null,
    last_loaded_at     timestamp not null,
    is_current         boolean not null,
    name               varchar,
    minted_at          timestamp,
    is_published       boolean default false,
    kind               varchar default 'exam',
    primary key (benchmark_version, suite)
);
comment on table benchmark_versions is 'Every benchmark version that was ever loaded, with the suites it is made of. Runs of different versions are never compared.';
comment on column benchmark_versions.benchmark_version is 'Hash of everything that decides what a pass means: items, prompts, judge prompt, protocol number.';
comment on column benchmark_versions.suite is 'Name of the suite in the settings.';
comment on column benchmark_versions.suite_version is 'Hash of the suite''s items.';
comment on column benchmark_versions.items is 'Number of items in the suite.';
comment on column benchmark_versions.answer_prompt_hash is 'Hash of what models are asked with by default: the system prompt, and for coding tasks their prompts and guidelines.';
comment on column benchmark_versions.judge_prompt_hash is 'Hash of the judge''s prompt.';
comment on column benchmark_versions.protocol is 'Number that is raised when the code changes what a pass means.';
comment on column benchmark_versions.first_loaded_at is 'When this version was loaded first.';
comment on column benchmark_versions.last_loaded_at is 'When this version was loaded last.';
comment on column benchmark_versions.is_current is 'Whether this is the version loaded last.';
comment on column benchmark_versions.name is 'The name under which the version was published (evals benchmark mint); NULL for one that was only loaded.';
comment on column benchmark_versions.minted_at is 'When it was published.';
comment on column benchmark_versions.is_published is 'Whether the leaderboard is about this version: the one published last, or the one loaded last while none was ever published.';
comment on column benchmark_versions.kind is 'What the suite holds: exam (questions) or coding (tasks graded in steps).';

create table items (
    suite          varchar,
    suite_version  varchar,
    item_id        varchar,
    question       varchar not null,
    image          varchar,
    answer         varchar not null,
    answer_type    varchar not null,
    category       varchar not null,
    rationale      varchar not null,
    raw_subject    varchar not null,
    cluster        varchar not null,
    is_clustered   boolean default false,
    kind           varchar default 'exam',
    toolchain      varchar,
    grader_version varchar,
    gaps           varchar,
    primary key (suite, suite_version, item_id)
);
comment on table items is 'Every item of every suite, in all versions that were ever loaded.';
comment on column items.suite is 'Name of the suite in the settings.';
comment on column items.suite_version is 'Hash of all items of the suite, this one included.';
comment on column items.item_id is 'Identifier, unique in its suite.';
comment on column items.question is 'The question or the task as the models read it.';
comment on column items.image is 'The image that belongs to the question, as a data URI; NULL if there is none.';
comment on column items.answer is 'The reference answer; of a coding task its files, as a JSON object of path and text.';
comment on column items.answer_type is 'exactMatch or multipleChoice; files for a coding task.';
comment on column items.category is 'Field of knowledge, or kind of task.';
comment on column items.rationale is 'Why the reference answer is right.';
comment on column items.raw_subject is 'The subject in finer words than the category.';
comment on column items.cluster is 'What groups items that are not independent, such as the passage they share: the column that the suite names as its cluster, else the category.';
comment on column items.is_clustered is 'Whether the suite names a cluster: comparisons then draw its items as a whole.';
comment on column items.kind is 'exam (a question) or coding (a task graded in steps).';
comment on column items.toolchain is 'Of a coding task: which toolchain checks its answers.';
comment on column items.grader_version is 'Of a coding task: hash of all that decides a pass (tests, reference, limits, toolchain).';
comment on column items.gaps is 'Of a coding task: known faults of the task or its grader that a model can not be blamed for.';

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
    last_seen_at      timestamp not null,
    dialect           varchar,
    reasoning_price   double,
    kept_out_because  varchar,
    web_search        boolean not null default false
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
comment on column model_catalog.selected is 'Whether the settings selected it when it was seen last, and it was not kept out (kept_out_because): if so it is a partition.';
comment on column model_catalog.listed is 'Whether its gateway still listed it the last time it was asked, and was still in the settings at the last refresh.';
comment on column model_catalog.created_at is 'When the model appeared, as the gateway says.';
comment on column model_catalog.first_seen_at is 'When it was seen first.';
comment on column model_catalog.last_seen_at is 'When it was seen last.';
comment on column model_catalog.dialect is 'How requests are written: chat_completions, responses or messages.';
comment on column model_catalog.reasoning_price is 'US dollars per reasoning token, where they have a price of their own.';
comment on column model_catalog.kept_out_because is 'Why a model that the settings selected was not taken when it was seen last: how a tiny question to it ended, and what the server said. NULL if it was not kept out.';
comment on column model_catalog.web_search is 'Whether its gateway lists web search for it, or the settings say that it has it.';

create table runs (
    run_id            varchar,
    model             varchar,
    experiment        varchar not null,
    benchmark_version varchar not null,
    scope             varchar not null,
    planned           bigint not null,
    plan_filter       json not null,
    parameters        json not null,
    simulated         boolean not null,
    opened_at         timestamp not null,
    samples           bigint not null default 1,
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
comment on column runs.samples is 'How often each item of the plan is asked.';

create table plans (
    run_id   varchar not null,
    model    varchar not null,
    suite    varchar not null,
    item_id  varchar not null,
    position bigint
);
comment on table plans is 'The items that each run covers.';
comment on column plans.run_id is 'The run.';
comment on column plans.model is 'The run''s model.';
comment on column plans.suite is 'The item''s suite.';
comment on column plans.item_id is 'The item.';
comment on column plans.position is 'The place of the item in the order of the data set, from 1.';

create table predictions (
    prediction_id       varchar not null,
    run_id              varchar,
    model               varchar,
    suite               varchar,
    item_id             varchar,
    sample              bigint,
    outcome             varchar not null,
    is_result           boolean not null,
    answer              varchar,
    reasoning           varchar,
    error               varchar,
    finish_reason       varchar,
    input_tokens        bigint,
    output_tokens       bigint,
    reasoning_tokens    bigint,
    cached_tokens       bigint,
    cost_usd            double,
    cost_estimated      boolean not null,
    latency_s           double,
    first_token_s       double,
    attempts            bigint not null,
    generation_id       varchar,
    served_by           varchar,
    model_reported      varchar,
    request_hash        varchar not null,
    carried_from        varchar,
    finished_at         timestamp not null,
    generation_s        double,
    system_fingerprint  varchar,
    output_tokens_per_s double,
    primary key (run_id, model, suite, item_id, sample)
);
comment on table predictions is 'The last reply to each item of each run, or why there is none.';
comment on column predictions.prediction_id is 'Identifier of this very reply; judgements refer to it.';
comment on column predictions.run_id is 'The run.';
comment on column predictions.model is 'The model that was asked.';
comment on column predictions.suite is 'The item''s suite.';
comment on column predictions.item_id is 'The item.';
comment on column predictions.sample is 'Number of the sample, if an item is asked several times in a run; 0 is the first.';
comment on column predictions.outcome is 'ok; refused, truncated, truncated_thinking or content_filter (the model''s own failing); or what went wrong on the way: empty, rate_limited, timeout, server_error, connection_error, cut_stream, invalid_reply, bad_request, context_too_long, auth, forbidden, no_credit, unknown_model.';
comment on column predictions.is_result is 'Whether the outcome says something about the model. If not, the item is asked again and never scored 0.';
comment on column predictions.answer is 'The reply''s text.';
comment on column predictions.reasoning is 'The reasoning text, where the API gives it apart from the answer.';
comment on column predictions.error is 'Why there is no reply, in the server''s words.';
comment on column predictions.finish_reason is 'Why the model stopped, as the server says.';
comment on column predictions.input_tokens is 'Tokens of the requests for this reply in this run, earlier attempts included, as far as servers told.';
comment on column predictions.output_tokens is 'Tokens of the replies, reasoning included: those of earlier attempts too, so not of the text in answer alone.';
comment on column predictions.reasoning_tokens is 'Tokens of reasoning within output_tokens, earlier attempts included.';
comment on column predictions.cached_tokens is 'Tokens within input_tokens that were read from the cache, earlier attempts included.';
comment on column predictions.cost_usd is 'Cost of the item in this run, earlier attempts included; NULL if for any attempt that used something neither the gateway nor its prices tell. What failed without a word about its use is taken to be free.';
comment on column predictions.cost_estimated is 'Whether any of the cost was computed from the catalog''s prices instead of being reported by the gateway.';
comment on column predictions.latency_s is 'Seconds from the request to the end of the reply, of the attempt that succeeded.';
comment on column predictions.first_token_s is 'Seconds from the request to the first text.';
comment on column predictions.attempts is 'How many requests were made until this reply; those of earlier launches are not counted.';
comment on column predictions.generation_id is 'The gateway''s id of the reply.';
comment on column predictions.served_by is 'Who served the reply.';
comment on column predictions.model_reported is 'The model''s name and version as the reply states it.';
comment on column predictions.request_hash is 'Hash of everything that was asked: model, messages, parameters.';
comment on column predictions.carried_from is 'The earlier run that asked and paid, if the answer was taken over from it: same request. NULL if it was asked for here.';
comment on column predictions.finished_at is 'When the reply was complete.';
comment on column predictions.generation_s is 'Seconds from the first token to the last; NULL if the reply was not streamed.';
comment on column predictions.system_fingerprint is 'The backend''s configuration, as the server names it.';
comment on column predictions.output_tokens_per_s is 'Output tokens per second of this very reply, from the first text to the end; without reasoning that was not sent as text, for it came before. NULL if the reply was not streamed or its tokens are not known.';

create table published (
    part         varchar primary key,
    snapshot     varchar not null,
    published_at timestamp not null
);
comment on table published is 'Which state of the journal this file shows, part by part.';
comment on column published.part is 'A stream of the journal, or sql for the queries that made the tables.';
comment on column published.snapshot is 'Hash of the part''s files.';
comment on column published.published_at is 'When the part was read.';

create table judged (
    prediction_id    varchar not null,
    run_id           varchar,
    model            varchar,
    suite            varchar,
    item_id          varchar,
    sample           bigint,
    judge            varchar,
    judge_version    varchar,
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
    graded_by        varchar,
    reply_format     varchar,
    launch           varchar,
    prompt_hash      varchar,
    failed_step      varchar,
    tests_passed     bigint,
    tests_total      bigint,
    toolchain        varchar,
    isolation        varchar,
    tests_told_by    varchar,
    backend          varchar,
    grader_version   varchar,
    answer_hash      varchar,
    primary key (run_id, model, suite, item_id, sample, judge, judge_version)
);
comment on table judged is 'The verdict of each judge, under each of its versions, that stands on each prediction that still stands.';
comment on column judged.prediction_id is 'The prediction that was judged.';
comment on column judged.run_id is 'The run.';
comment on column judged.model is 'The model that was asked.';
comment on column judged.suite is 'The item''s suite.';
comment on column judged.item_id is 'The item.';
comment on column judged.sample is 'Number of the sample.';
comment on column judged.judge is 'Under whose name it stands: a model; rules; rules+ and a model, which was asked where the rules were not certain; steps, where there is nothing but code to grade. Verdicts on code beside questions stand under the judge of the questions (see graded_by).';
comment on column judged.judge_version is 'Hash of the judge''s prompt, reply schema and parameters, and of the version of the rules if they took part.';
comment on column judged.outcome is 'ok; undecided (the rules judged alone and can not tell); judge_unparsable; sandbox_error (code could not be graded here, which says nothing about it); or what went wrong on the way to the judge.';
comment on column judged.score is '1 or 0, or None if nobody could tell; code has 1 only if every step that applies was perfect.';
comment on column judged.reason is 'Whoever graded: the reasoning; or why there is no score.';
comment on column judged.extracted_answer is 'The final answer that the judge found in the reply.';
comment on column judged.confidence is 'The confidence that the reply states, from 0 to 1; NULL if it states none.';
comment on column judged.raw_reply is 'The last reply of the judge as it came, also where a later attempt failed; NULL if there was none.';
comment on column judged.input_tokens is 'Tokens of the request to the judge.';
comment on column judged.output_tokens is 'Tokens of the judge''s reply.';
comment on column judged.cost_usd is 'Cost of judging by this judge under this version, earlier attempts included; NULL if unknown.';
comment on column judged.cost_estimated is 'Whether the cost was computed from the catalog''s prices.';
comment on column judged.latency_s is 'Seconds until the judge''s reply was complete.';
comment on column judged.attempts is 'How many requests were made to the judge; 0 if none was needed.';
comment on column judged.finished_at is 'When the verdict was there.';
comment on column judged.carried_from is 'The earlier run that this verdict was taken over from; NULL if it was asked for here.';
comment on column judged.graded_by is 'rules; steps, for code; or the model that was asked for this verdict; NULL if nobody was needed, since the model had failed to answer.';
comment on column judged.reply_format is 'What held the judge to the form of its reply: json_schema, tool (a function it had to call) or text (the prompt alone); NULL if no model was asked.';
comment on column judged.launch is 'The Dagster run that gave the verdict; of one that was tried again, the first. NULL for verdicts from before this was kept.';
comment on column judged.prompt_hash is 'Hash of the prompt that the judge is asked with, as in benchmark_versions.judge_prompt_hash; NULL if the rules judge alone, and for verdicts from before this was kept.';
comment on column judged.failed_step is 'Of code: the first step that was not perfect; NULL if all were.';
comment on column judged.tests_passed is 'Of code: tests that passed; NULL if it did not come to tests.';
comment on column judged.tests_total is 'Of code: tests there are, those of an AI grader included; NULL if it did not come to tests.';
comment on column judged.toolchain is 'Of code: the toolchain and its version.';
comment on column judged.isolation is 'Of code: how far from everything else it ran: bwrap, container or none.';
comment on column judged.tests_told_by is 'Of code: oracle (the tests ran in a process that the answer never ran in) or tamper_evident (they shared one).';
comment on column judged.backend is 'Of code: what stood in for a server that it needs, such as convex-test.';
comment on column judged.grader_version is 'Of code: the grader, as in items.';
comment on column judged.answer_hash is 'Of code: hash of the files that were found in the reply.';

create table rejudged (
    prediction_id  varchar,
    run_id         varchar,
    model          varchar,
    suite          varchar not null,
    item_id        varchar not null,
    sample         bigint not null,
    judge          varchar,
    judge_version  varchar,
    repeat         bigint,
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

create table steps (
    prediction_id varchar not null,
    run_id        varchar not null,
    model         varchar not null,
    suite         varchar not null,
    item_id       varchar not null,
    sample        bigint not null,
    judge         varchar not null,
    judge_version varchar not null,
    position      bigint not null,
    step          varchar not null,
    status        varchar not null,
    reason        varchar not null,
    output        varchar not null,
    seconds       double not null,
    tests         struct("name" varchar, passed boolean, message varchar)[] not null
);
comment on table steps is 'One row per step that an answer in code was taken through, in order. filesystem, install and deploy stop the grading if they fail; typecheck and lint do not.';
comment on column steps.prediction_id is 'The prediction that was graded.';
comment on column steps.run_id is 'The run of the prediction.';
comment on column steps.model is 'The model that was asked.';
comment on column steps.suite is 'The item''s suite.';
comment on column steps.item_id is 'The item.';
comment on column steps.sample is 'Number of the sample.';
comment on column steps.judge is 'Under whose name the verdict stands, as in judged.';
comment on column steps.judge_version is 'The version of that judge.';
comment on column steps.position is 'The how-manieth step it was, from 1.';
comment on column steps.step is 'filesystem, install, deploy, typecheck, lint or tests.';
comment on column steps.status is 'passed; failed; skipped (it does not apply here); or error, which says nothing about the answer.';
comment on column steps.reason is 'Why, in a line.';
comment on column steps.output is 'What the tools said, without control characters, cut where it was too long.';
comment on column steps.seconds is 'How long it took.';
comment on column steps.tests is 'Of the step tests: every test with what came of it.';

create table attempts (
    run_id     varchar,
    model      varchar,
    experiment varchar not null,
    filtered   boolean not null,
    repair     boolean not null,
    began_at   timestamp not null,
    primary key (run_id, model)
);
comment on table attempts is 'Every launch that set out to ask a model, also if it failed before anything was asked.';
comment on column attempts.run_id is 'Id of the Dagster run that was launched; the run that it went on with may be an older one.';
comment on column attempts.model is 'The model that was to be asked.';
comment on column attempts.experiment is 'The named variation of how models are asked.';
comment on column attempts.filtered is 'Whether the launch was for a part of the benchmark only, by number, category or pattern: such runs never enter the leaderboard.';
comment on column attempts.repair is 'Whether it was to mend an earlier run (resume, fix, or a run that was named) where there is one, which is no evaluation of its own.';
comment on column attempts.began_at is 'When the model''s turn came.';

create table diagnoses (
    run_id           varchar not null,
    model            varchar not null,
    prediction_id    varchar not null,
    suite            varchar not null,
    item_id          varchar not null,
    sample           bigint not null,
    judge            varchar not null,
    judge_version    varchar not null,
    analyst          varchar not null,
    analyst_version  varchar not null,
    outcome          varchar not null,
    reason           varchar,
    failed_step      varchar,
    error            varchar,
    classification   varchar,
    gap              varchar,
    reasoning        varchar,
    model_snippet    varchar,
    expected_snippet varchar,
    raw_reply        varchar,
    cost_usd         double,
    cost_estimated   boolean,
    launch           varchar,
    carried_from     varchar,
    diagnosed_at     timestamp
);
comment on table diagnoses is 'What an analyst found out about failures: one row per wrong reply and version of a judge that found it wrong. A later failure to explain does not undo an explanation.';
comment on column diagnoses.run_id is 'The run.';
comment on column diagnoses.model is 'The model that was wrong.';
comment on column diagnoses.prediction_id is 'The reply.';
comment on column diagnoses.suite is 'The item''s suite.';
comment on column diagnoses.item_id is 'The item.';
comment on column diagnoses.sample is 'The number of the sample, from 0.';
comment on column diagnoses.judge is 'The judge that found the reply wrong.';
comment on column diagnoses.judge_version is 'The version of that judge.';
comment on column diagnoses.analyst is 'The model that looked into the failure.';
comment on column diagnoses.analyst_version is 'Equal for diagnoses that were asked for in the same way: prompt, form and token limit.';
comment on column diagnoses.outcome is 'How asking the analyst ended; ok if there is an explanation.';
comment on column diagnoses.reason is 'Why there is no explanation; empty if there is one.';
comment on column diagnoses.failed_step is 'The step that failed, as the analyst names it; NULL for answers to questions.';
comment on column diagnoses.error is 'The failure in a line.';
comment on column diagnoses.classification is 'MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK or KNOWN_GAP, as the analyst sees it; NULL without an explanation.';
comment on column diagnoses.gap is 'Of a KNOWN_GAP: the entry of the task''s GAPS.txt.';
comment on column diagnoses.reasoning is 'Why it is classified so, in two or three sentences.';
comment on column diagnoses.model_snippet is 'What the model wrote, the part that matters.';
comment on column diagnoses.expected_snippet is 'What was expected in its place.';
comment on column diagnoses.raw_reply is 'What the analyst replied, as it came.';
comment on column diagnoses.cost_usd is 'What the analyst cost, all attempts included; NULL if unknown.';
comment on column diagnoses.cost_estimated is 'Whether the cost was computed from the catalog''s prices.';
comment on column diagnoses.launch is 'The Dagster run that asked the analyst.';
comment on column diagnoses.carried_from is 'The earlier run that paid for it, if it was taken over with the reply; NULL if it was asked for here.';
comment on column diagnoses.diagnosed_at is 'When the analyst had replied, in UTC.';

create table reclassified (
    run_id         varchar not null,
    model          varchar not null,
    suite          varchar not null,
    item_id        varchar not null,
    sample         bigint,
    classification varchar,
    note           varchar,
    classified_at  timestamp
);
comment on table reclassified is 'What people say that failures are (evals classify), the latest word on each.';
comment on column reclassified.run_id is 'The run.';
comment on column reclassified.model is 'The model.';
comment on column reclassified.suite is 'The item''s suite.';
comment on column reclassified.item_id is 'The item.';
comment on column reclassified.sample is 'The sample that is meant; NULL for all of them.';
comment on column reclassified.classification is 'MODEL_FAULT, OVERLY_STRICT, AMBIGUOUS_TASK or KNOWN_GAP; NULL where they leave it to the analyst again.';
comment on column reclassified.note is 'Why.';
comment on column reclassified.classified_at is 'When it was said, in UTC.';
