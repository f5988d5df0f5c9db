"""Everything that can be queried is described, and the page that describes it is up to date."""

from pathlib import Path

import dagster as dg
import duckdb
import pandas as pd

import eval_pipeline
from eval_pipeline.defs import assets
from eval_pipeline.hashing import fingerprint
from eval_pipeline.results.queries import query
from eval_pipeline.results.schema import VERSION, create_schema, schema_page, schema_texts
from eval_pipeline_tests.test_tables import NAMED_OTHERWISE

PAGE = Path(eval_pipeline.__file__).parents[1] / "docs" / "schema.md"


def described() -> pd.DataFrame:
    with duckdb.connect() as db:
        create_schema(db)
        return query(db, "summaries/schema").df()


def test_the_page_in_docs_is_the_one_that_the_database_gives() -> None:
    page = schema_page()

    assert PAGE.read_text("utf-8") == page, "run `make docs`"


def test_a_changed_schema_has_a_version_of_its_own() -> None:
    made_with = fingerprint(*schema_texts())

    assert (VERSION, made_with) == (22, "fd51b2bf6165af50"), "raise VERSION, then note its hash"


def test_every_table_view_and_column_says_what_it_means() -> None:
    columns = described()

    silent = columns[(columns["about"].str.strip() == "") | (columns["meaning"].str.strip() == "")]
    assert len(columns) > 100
    assert silent[["relation", "column"]].to_numpy().tolist() == []


def test_every_column_of_a_table_has_a_description_of_its_own() -> None:
    with duckdb.connect() as db:
        create_schema(db)
        borrowed = db.sql(
            "select table_name, column_name from duckdb_columns() "
            "where table_name in (select table_name from duckdb_tables()) "
            "and table_name <> 'schema_version' and coalesce(trim(comment), '') = ''"
        ).fetchall()

    assert borrowed == []


def test_every_asset_has_a_table_or_view_of_its_name_or_one_that_says_more() -> None:
    loaded = dg.load_assets_from_modules([assets])

    names = {
        asset.key.to_user_string() for asset in loaded if isinstance(asset, dg.AssetsDefinition)
    }

    assert names >= {"dataset", "leaderboard"}
    assert {NAMED_OTHERWISE.get(name, name) for name in names} <= set(described()["relation"])
