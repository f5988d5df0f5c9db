-- With which prompt a verdict was given: a judge's version also changes with its limits and the rules.
alter table judged add column prompt_hash varchar;
comment on column judged.prompt_hash is 'Hash of the prompt that the judge is asked with, as in benchmark_versions.judge_prompt_hash; NULL if the rules judge alone, and for verdicts from before this was kept.';
comment on column judged.raw_reply is 'The last reply of the judge as it came, also where a later attempt failed; NULL if there was none.';
comment on column judge_reliability.measure is 'repeats: a judge against itself when asked again; between judges: two judges, or all judges, on the same replies, verdicts that one grader (such as the rules) gave for both left out; people: a judge against human_labels; own family: a judge on replies of its own vendor''s models.';
comment on column judge_reliability.alpha is 'Krippendorff''s alpha: agreement of three or more judges beyond chance, over replies that at least two graders scored; rules before a model are left out where that model or the rules judge by themselves too. NULL if all verdicts are the same.';
