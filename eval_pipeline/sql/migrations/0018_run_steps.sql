-- Where the code of each run failed, counted in one place.
create view run_steps as
select
    judged.run_id,
    judged.model,
    judged.judge,
    judged.judge_version,
    runs.experiment,
    runs.simulated,
    runs.scope,
    count(*) as graded,
    count(*) filter (score = 1) as passed,
    count(*) filter (failed_step = 'filesystem') as "filesystem",
    count(*) filter (failed_step = 'install') as install,
    count(*) filter (failed_step = 'deploy') as deploy,
    count(*) filter (failed_step = 'typecheck') as typecheck,
    count(*) filter (failed_step = 'lint') as lint,
    count(*) filter (failed_step = 'tests') as tests,
    sum(tests_passed) / nullif(sum(tests_total), 0) as tests_passed_share
from judged
join runs using (run_id, model)
where judged.grader_version is not null and score is not null
group by all;
comment on view run_steps is 'At which step the answers in code of a run failed first, one row per version of a judge; runs without code have none.';
comment on column run_steps.experiment is 'The run''s experiment.';
comment on column run_steps.scope is 'The run''s scope: full, text or filtered.';
comment on column run_steps.simulated is 'Whether a simulated model was asked.';
comment on column run_steps.graded is 'Answers in code that have a score.';
comment on column run_steps.passed is 'Those that passed every step.';
comment on column run_steps."filesystem" is 'Those that failed first because files were missing or wrong.';
comment on column run_steps.install is 'Those that failed first when their packages were installed.';
comment on column run_steps.deploy is 'Those that failed first when they were deployed.';
comment on column run_steps.typecheck is 'Those that failed first at the type checker.';
comment on column run_steps.lint is 'Those that failed first at the linter.';
comment on column run_steps.tests is 'Those that failed first at the tests.';
comment on column run_steps.tests_passed_share is 'Share of all tests that passed, of the answers that got as far; NULL if none did.';
