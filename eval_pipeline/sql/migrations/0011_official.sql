-- Which version of each judge counts where only one can be shown.
drop view leaderboard;
alter table leaderboard_entries add column is_official boolean default false;
alter table leaderboard_entries alter column is_official set not null;
comment on column leaderboard_entries.is_official is 'Whether this is the official version of its judge, one of each: with the judge''s prompt of the benchmark version (verdicts from before prompts were kept pass for such), then the one that scored the most models completely, then the one last at work. What is printed and plotted is official.';
comment on column leaderboard_entries.judge is 'Who judged; each judge, under each of its versions, has a leaderboard of its own.';
comment on column leaderboard_entries.category_accuracy is 'Mean score by category; by suite/category where the benchmark version has several suites.';
create view leaderboard as
select entries.*, model_catalog.display_name
from leaderboard_entries entries
left join model_catalog using (model);
comment on view leaderboard is 'One row per model, experiment, judge and version of the judge (is_official: the one that counts): the mean of its latest complete runs of the published benchmark version, full ones if there are any. Filtered and incomplete runs are not in it, and runs of other versions never mix with these.';
