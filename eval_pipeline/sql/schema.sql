-- Every table and view with its columns and what the comments say; a view's column means what
-- the column of that name in its table means.
with relations as (
    select table_name as relation, comment as about from duckdb_tables()
    union all
    select view_name, comment from duckdb_views() where not internal
),
meanings as (
    select column_name, any_value(comment) as meaning
    from duckdb_columns()
    where comment is not null
    group by column_name
)
select
    relation,
    coalesce(about, '') as about,
    column_name as "column",
    data_type as "type",
    coalesce(columns.comment, meaning, '') as meaning
from duckdb_columns() as columns
join relations on relations.relation = columns.table_name
left join meanings using (column_name)
where relation <> 'schema_migrations'
order by relation, column_index
