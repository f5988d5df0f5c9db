"""What the UI is told of tables: every column with its meaning, and how many rows there are."""

from pathlib import Path

import dagster as dg
import duckdb
import pytest

from eval_pipeline.defs import assets
from eval_pipeline.defs.metadata import described, how_asking_went
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.results.schema import create_schema
from eval_pipeline_tests.builders import a_prediction, a_warehouse

NAMED_OTHERWISE = {"run_reports": "failure_analysis"}
TABLES = sorted(
    NAMED_OTHERWISE.get(name := one.key.to_user_string(), name)
    for one in dg.load_assets_from_modules([assets])
    if isinstance(one, dg.AssetsDefinition)
)


@pytest.mark.parametrize("table", TABLES)
def test_every_column_of_an_assets_table_says_its_type_and_what_it_means(table: str) -> None:
    with duckdb.connect() as db:
        create_schema(db)
        told = described(db, table)
        found = db.table(table)
        columns = list(zip(found.columns, map(str, found.types), strict=True))

    shown = told["dagster/column_schema"]
    assert isinstance(shown, dg.TableSchemaMetadataValue)
    assert [(one.name, one.type) for one in shown.schema.columns] == columns
    assert all(one.description for one in shown.schema.columns)
    assert told["dagster/row_count"] == 0
    assert told["dagster/table_name"] == f"main.{table}"


def test_rows_are_counted_by_model_and_a_model_without_any_has_none(tmp_path: Path) -> None:
    warehouse = a_warehouse(tmp_path, a_prediction("q1"), a_prediction("q2"))

    tallies = [StageProgress(model, "asked") for model in ("demo/strong", "demo/weak")]

    with warehouse.reading() as db:
        told = how_asking_went(db, tallies, "default", Launch("launch"))

    counted = {model: shown["dagster/partition_row_count"] for model, shown in told.items()}
    assert counted == {"demo/strong": 2, "demo/weak": 0}
    assert [shown["dagster/row_count"] for shown in told.values()] == [2, 2]
