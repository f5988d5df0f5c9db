-- journal: attempts -> attempts
insert into attempts
select run_id, model, experiment, filtered, repair, began_at
from read_json($files, format = 'newline_delimited', ignore_errors = true, hive_partitioning = false, columns = {
    run_id: 'varchar',
    model: 'varchar',
    experiment: 'varchar',
    filtered: 'boolean',
    repair: 'boolean',
    began_at: 'timestamp'
})
where run_id is not null
