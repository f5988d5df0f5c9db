-- journal: versions -> benchmark_versions
insert into benchmark_versions
with loads as (
    select
        benchmark_version, unnest(suites) as suite, answer_prompt_hash, judge_prompt_hash, protocol, loaded_at,
        minted_as
    from read_json($files, format = 'newline_delimited', ignore_errors = true, hive_partitioning = false, columns = {
        benchmark_version: 'varchar',
        suites: 'struct(suite varchar, suite_version varchar, items bigint, kind varchar)[]',
        answer_prompt_hash: 'varchar',
        judge_prompt_hash: 'varchar',
        protocol: 'bigint',
        loaded_at: 'timestamp',
        minted_as: 'varchar'
    })
    where benchmark_version is not null
)
select
    benchmark_version,
    suite.suite,
    any_value(suite.suite_version),
    any_value(suite.items),
    any_value(answer_prompt_hash),
    any_value(judge_prompt_hash),
    any_value(protocol),
    min(loaded_at),
    max(loaded_at),
    benchmark_version = (select arg_max(benchmark_version, loaded_at) from loads),
    arg_max(minted_as, loaded_at) filter (minted_as is not null),
    max(loaded_at) filter (minted_as is not null),
    benchmark_version = (
        select coalesce(
            arg_max(benchmark_version, loaded_at) filter (minted_as is not null),
            arg_max(benchmark_version, loaded_at))
        from loads),
    coalesce(any_value(suite.kind), 'exam')
from loads
group by benchmark_version, suite.suite
