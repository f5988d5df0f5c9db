-- Coding tasks: what they are, and how an answer in files fared, step by step.
alter table benchmark_versions add column kind varchar default 'exam';
comment on column benchmark_versions.kind is 'What the suite holds: exam (questions) or coding (tasks graded in steps).';
comment on column benchmark_versions.answer_prompt_hash is 'Hash of what models are asked with by default: the system prompt, and for coding tasks their prompts and guidelines.';

drop view dataset;
alter table items add column kind varchar default 'exam';
alter table items add column toolchain varchar;
alter table items add column grader_version varchar;
alter table items add column gaps varchar;
comment on column items.question is 'The question or the task as the models read it.';
comment on column items.answer is 'The reference answer; of a coding task its files, as a JSON object of path and text.';
comment on column items.answer_type is 'exactMatch or multipleChoice; files for a coding task.';
comment on column items.category is 'Field of knowledge, or kind of task.';
comment on column items.kind is 'exam (a question) or coding (a task graded in steps).';
comment on column items.toolchain is 'Of a coding task: which toolchain checks its answers.';
comment on column items.grader_version is 'Of a coding task: hash of all that decides a pass (tests, reference, limits, toolchain).';
comment on column items.gaps is 'Of a coding task: known faults of the task or its grader that a model can not be blamed for.';
create view dataset as
select items.*, benchmark_versions.benchmark_version
from items
join benchmark_versions using (suite, suite_version)
where benchmark_versions.is_current;
comment on view dataset is 'Every item of every suite of the current benchmark version.';

alter table judged add column failed_step varchar;
alter table judged add column tests_passed bigint;
alter table judged add column tests_total bigint;
alter table judged add column toolchain varchar;
alter table judged add column isolation varchar;
alter table judged add column tests_told_by varchar;
alter table judged add column backend varchar;
alter table judged add column grader_version varchar;
alter table judged add column answer_hash varchar;
comment on column judged.score is '1 or 0, or None if nobody could tell; code has 1 only if every step that applies was perfect.';
comment on column judged.outcome is 'ok; undecided (the rules judged alone and can not tell); judge_unparsable; sandbox_error (code could not be graded here, which says nothing about it); or what went wrong on the way to the judge.';
comment on column judged.graded_by is 'rules; steps, for code; or the model that was asked for this verdict; NULL if nobody was needed, since the model had failed to answer.';
comment on column judged.judge is 'Under whose name it stands: a model; rules; rules+ and a model, which was asked where the rules were not certain; steps, where there is nothing but code to grade. Verdicts on code beside questions stand under the judge of the questions (see graded_by).';
comment on column judged.failed_step is 'Of code: the first step that was not perfect; NULL if all were.';
comment on column judged.tests_passed is 'Of code: tests that passed; NULL if it did not come to tests.';
comment on column judged.tests_total is 'Of code: tests there are, those of an AI grader included; NULL if it did not come to tests.';
comment on column judged.toolchain is 'Of code: the toolchain and its version.';
comment on column judged.isolation is 'Of code: how far from everything else it ran: bwrap, container or none.';
comment on column judged.tests_told_by is 'Of code: oracle (the tests ran in a process that the answer never ran in) or tamper_evident (they shared one).';
comment on column judged.backend is 'Of code: what stood in for a server that it needs, such as convex-test.';
comment on column judged.grader_version is 'Of code: the grader, as in items.';
comment on column judged.answer_hash is 'Of code: hash of the files that were found in the reply.';

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
