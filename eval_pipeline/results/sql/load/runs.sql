-- journal: runs -> runs and plans
create temp table run_records as
select *
from read_json($files, format = 'newline_delimited', ignore_errors = true, hive_partitioning = false,
    maximum_object_size = $longest, columns = {
        run_id: 'varchar',
        model: 'varchar',
        experiment: 'varchar',
        benchmark_version: 'varchar',
        plan: 'varchar[][]',
        plan_filter: 'json',
        scope: 'varchar',
        parameters: 'json',
        simulated: 'boolean',
        samples: 'bigint',
        opened_at: 'timestamp'
    })
where run_id is not null;

insert into runs
select
    run_id, model, experiment, benchmark_version, scope, len(plan), plan_filter, parameters, simulated, opened_at,
    coalesce(samples, 1)
from run_records;

insert into plans
select run_id, model, planned[1], planned[2], position
from (select run_id, model, unnest(plan) as planned, generate_subscripts(plan, 1) as position from run_records);

drop table run_records
