"""What the UI is told of an asset's table: its columns and what they mean, and how many rows."""

from collections.abc import Sequence

import dagster as dg
import duckdb

from eval_pipeline.results.queries import query

SCHEMA = "main"


def described(
    db: duckdb.DuckDBPyConnection, table: str
) -> dict[str, str | int | dg.TableSchemaMetadataValue]:
    """The table or view of that name, under the keys that Dagster shows tables by."""
    return {
        "dagster/table_name": f"{SCHEMA}.{table}",
        "dagster/row_count": len(db.table(table)),
        "dagster/column_schema": dg.MetadataValue.table_schema(_columns(db, table)),
    }


def rows_by_model(
    db: duckdb.DuckDBPyConnection, table: str, models: Sequence[str]
) -> dict[str, int]:
    """How many rows of the table each model has."""
    counted = dict(db.table(table).aggregate("model, count(*)", "model").fetchall())
    return {model: counted.get(model, 0) for model in models}


def _columns(db: duckdb.DuckDBPyConnection, table: str) -> dg.TableSchema:
    of_table = duckdb.ColumnExpression("relation") == duckdb.ConstantExpression(table)
    found = query(db, "summaries/schema").filter(of_table).project('"column", "type", meaning')
    return dg.TableSchema(
        [
            dg.TableColumn(name, type=kind, description=meaning)
            for name, kind, meaning in found.fetchall()
        ]
    )
