-- The lines of a stream that had been written at that time, with nothing but what is counted: texts take memory.
-- Loading reads them from a view of that name.
create or replace temp table lines_then as
select
    to_json(struct_insert(
        json_transform(line, '{
            "prediction_id": "varchar",
            "run_id": "varchar",
            "model": "varchar",
            "suite": "varchar",
            "item_id": "varchar",
            "sample": "bigint",
            "judge": "varchar",
            "judge_version": "varchar",
            "outcome": "varchar",
            "score": "double",
            "launch": "varchar",
            "usage": "json",
            "attempts": "bigint",
            "request_hash": "varchar",
            "carried_from": "varchar",
            "finished_at": "timestamp"
        }'),
        reason := ''
    )) as line
from lines
where try_cast(line ->> 'finished_at' as timestamp) <= $as_of::timestamp;

create or replace temp view lines as
from lines_then
