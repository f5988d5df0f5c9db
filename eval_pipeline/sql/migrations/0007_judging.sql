-- Who gave a verdict, in which form, and in which launch; judges other than one model.
alter table judged add column graded_by varchar;
alter table judged add column reply_format varchar;
alter table judged add column launch varchar;
comment on column judged.judge is 'Who judged: a model; rules; or rules+ and a model, which was asked where the rules were not certain.';
comment on column judged.judge_version is 'Hash of the judge''s prompt, reply schema and parameters, and of the version of the rules if they took part.';
comment on column judged.outcome is 'ok; undecided (the rules judged alone and can not tell); judge_unparsable; or what went wrong on the way to the judge.';
comment on column judged.reason is 'Whoever graded: the reasoning; or why there is no score.';
comment on column judged.raw_reply is 'The judge''s reply as it came; NULL if no model was asked.';
comment on column judged.graded_by is 'rules, or the model that was asked for this verdict; NULL if nobody was needed, since the model had failed to answer.';
comment on column judged.reply_format is 'What held the judge to the form of its reply: json_schema, tool (a function it had to call) or text (the prompt alone); NULL if no model was asked.';
comment on column judged.launch is 'The Dagster run that gave the verdict; of one that was tried again, the first. NULL for verdicts from before this was kept.';
