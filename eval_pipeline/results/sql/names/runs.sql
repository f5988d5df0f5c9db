-- The first characters of every run's id, as people type them.
select distinct left(run_id, 8) as run from runs order by run
