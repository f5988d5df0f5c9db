-- How many replies there are to write pages for.
select coalesce(sum(planned * samples), 0)::bigint from runs
