-- Every table and view with its columns and what the comments say; a view's column means what
-- the column of that name means in a table that the view is made of.
with relations as (
    select table_name as relation, comment as about, '' as made_of from duckdb_tables()
    where database_name = current_database()
    union all
    select view_name, comment, sql from duckdb_views()
    where database_name = current_database() and not internal
),
described as (
    select relation, about, made_of, column_name, column_index, data_type, columns.comment as meaning
    from relations
    join duckdb_columns() as columns on columns.table_name = relations.relation
    where database_name = current_database() and relation not in ('schema_version', 'schema_migrations')
)
select
    relation,
    coalesce(about, '') as about,
    column_name as "column",
    data_type as "type",
    coalesce(meaning, (
        select min(origin.meaning)
        from described as origin
        where origin.column_name = described.column_name
            and regexp_matches(described.made_of, '\b' || origin.relation || '\b')
    ), '') as meaning
from described
order by relation, column_index
