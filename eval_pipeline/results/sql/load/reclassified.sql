-- journal: reclassified -> reclassified: the latest word on each failure, which may be to leave it to the analyst.
insert into reclassified
with said as (
    select unnest(json_transform(line, '{
        "run_id": "varchar",
        "model": "varchar",
        "suite": "varchar",
        "item_id": "varchar",
        "sample": "bigint",
        "classification": "varchar",
        "note": "varchar",
        "classified_at": "timestamp"
    }'))
    from lines
)
from said
where run_id is not null
qualify row_number() over (
    partition by run_id, model, suite, item_id, sample order by classified_at desc) = 1
