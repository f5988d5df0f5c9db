-- The items of these runs.
select distinct item_id from plans where list_contains($runs, run_id) order by item_id
