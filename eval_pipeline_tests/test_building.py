"""The DuckDB file is filled in little memory, from files that may be compacted meanwhile."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.journal import PREDICTIONS, SIGHTINGS, Journal, Stream
from eval_pipeline.journal.files import FileCompactedError
from eval_pipeline.records.base import now
from eval_pipeline.records.model import Sighting
from eval_pipeline.results import build as building
from eval_pipeline.results.build import Order, WarehouseError, build, derive
from eval_pipeline.results.queries import SQL
from eval_pipeline.results.schema import VERSION, create_schema, schema_version
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.benchmark import keep
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_model,
    a_prediction,
    a_question,
    a_warehouse,
)
from eval_pipeline_tests.test_warehouse import rows_of_all_tables, the_warehouse

# Publishes a journal with this many long answers, and says how much the process has grown by it.
PUBLISHER = """
import resource, sys
from pathlib import Path
from eval_pipeline.journal import Journal
from eval_pipeline.results.warehouse import Warehouse
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
before = peak()
Warehouse(Path(sys.argv[1], "evals.duckdb"), Journal(Path(sys.argv[1], "journal"))).publish()
print((peak() - before) // 1024)
"""


@dataclass(frozen=True)
class StaleJournal(Journal):
    """Lists a file that is gone, each time that the next of its listings is to be stale."""

    is_stale: Iterator[bool] = field(default_factory=lambda: repeat(False))

    def files(self, stream: Stream[Any], *parts: str) -> list[Path]:
        found = super().files(stream, *parts)
        if stream is PREDICTIONS and next(self.is_stale, False):
            return [*found, self.root / "predictions" / "gone.jsonl"]
        return found


def rows(warehouse: Warehouse) -> list[list[tuple[object, ...]]]:
    tables = ("items", "runs", "predictions", "judged", "metrics", "leaderboard")
    with warehouse.reading() as db:
        return [db.sql(f"from {name} order by all").fetchall() for name in tables]


def in_another_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "LARGE", 0)


def with_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "LEAST_MEMORY", 2 * 1024 * 1024)


@pytest.mark.parametrize("way", [in_another_process, with_too_little_memory])
def test_the_file_is_the_same_however_it_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Callable[[pytest.MonkeyPatch], None]
) -> None:
    warehouse = a_warehouse(tmp_path, *(a_prediction(f"q{n}", answer="ü\0") for n in range(3)))
    before = rows(warehouse)

    way(monkeypatch)
    warehouse.publish(force=True)

    assert all(before)
    assert rows(warehouse) == before
    assert {path.name for path in tmp_path.iterdir()} == {
        ".evals.shown",
        "evals.duckdb",
        "evals.lock",
        "journal",
    }


@pytest.mark.slow
def test_lines_of_any_length_are_loaded(tmp_path: Path) -> None:
    long = a_prediction("q1", answer="x" * 5_000_000)

    warehouse = a_warehouse(tmp_path, long, a_prediction("q2"))

    with warehouse.reading() as db:
        lengths = db.sql("select length(answer) from predictions order by item_id").fetchall()
    assert lengths == [(5_000_000,), (2,)]


@pytest.mark.parametrize("large", [0, building.LARGE])
def test_what_goes_wrong_is_told_from_either_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: int
) -> None:
    journal = a_journal(tmp_path, a_prediction())
    monkeypatch.setattr(building, "LARGE", large)

    with pytest.raises(WarehouseError, match=r"can not be built \(.*missing.*evals rebuild"):
        build(tmp_path / "missing" / "evals.new", Order(journal, {}, []))


@pytest.mark.parametrize("good_listings", range(5))
def test_a_file_that_was_compacted_meanwhile_is_no_reason_to_give_up(
    tmp_path: Path, good_listings: int
) -> None:
    journal = a_journal(tmp_path, a_prediction())
    stale = StaleJournal(journal.root, chain([False] * good_listings, [True]))
    warehouse = Warehouse(tmp_path / "evals.duckdb", stale)

    warehouse.publish()

    with warehouse.reading() as db:
        assert db.sql("select count(*) from predictions").fetchall() == [(1,)]


def test_files_that_keep_going_away_are_told_and_the_old_file_stays(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    before = warehouse.path.read_bytes()
    stale = StaleJournal(warehouse.journal.root, repeat(True))

    with pytest.raises(FileCompactedError, match="try again"):
        Warehouse(warehouse.path, stale).publish()

    assert warehouse.path.read_bytes() == before


@pytest.mark.slow
def test_the_pipelines_own_process_does_not_grow_with_the_journal(tmp_path: Path) -> None:
    a_journal(tmp_path, *(a_prediction(f"q{n}", answer="x" * 60_000) for n in range(500)))

    command = [sys.executable, "-c", PUBLISHER, str(tmp_path)]
    grown_by = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert int(grown_by) < 20


def a_sighting(**changes: Any) -> Sighting:
    return Sighting(model=a_model(**changes), selected=True, seen_at=now())


def test_what_has_not_changed_is_not_read_again_and_all_is_as_if_it_had_been(
    tmp_path: Path,
) -> None:
    warehouse = the_warehouse(tmp_path)
    journal = warehouse.journal
    journal.write_whole(SIGHTINGS, "first", records=[a_sighting()])
    warehouse.publish()
    # Were it read again, this would be the end of it.
    (predictions,) = journal.files(PREDICTIONS)
    whole = predictions.read_bytes()
    predictions.write_bytes(b"\n" * len(whole))
    journal.write_whole(SIGHTINGS, "second", records=[a_sighting(display_name="Renamed")])
    keep(a_benchmark(a_question("q1"), a_question("q9")), journal)

    warehouse.publish()

    predictions.write_bytes(whole)
    partly = rows_of_all_tables(warehouse)
    warehouse.publish(force=True)
    assert partly == rows_of_all_tables(warehouse)
    assert len(partly["predictions"]) == 1
    assert "Renamed" in partly["model_catalog"][0]


def test_models_seen_before_web_search_was_kept_are_loaded(tmp_path: Path) -> None:
    warehouse = a_warehouse(tmp_path)
    warehouse.journal.write_whole(SIGHTINGS, "first", records=[a_sighting()])
    (file,) = warehouse.journal.files(SIGHTINGS)
    earlier = json.loads(file.read_text("utf-8"))
    del earlier["model"]["web_search"]
    file.write_text(json.dumps(earlier) + "\n", "utf-8")

    warehouse.publish()

    with warehouse.reading() as db:
        assert db.sql("select web_search from model_catalog").fetchall() == [(False,)]


def test_only_the_parts_that_were_asked_for_are_brought_up_to_date(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    journal = a_journal(tmp_path, a_prediction("q2"))
    journal.write_whole(SIGHTINGS, "first", records=[a_sighting()])

    warehouse.publish(SIGHTINGS)
    before = rows_of_all_tables(warehouse)
    warehouse.publish()
    after = rows_of_all_tables(warehouse)

    assert (len(before["model_catalog"]), len(before["predictions"])) == (1, 1)
    assert (len(after["model_catalog"]), len(after["predictions"])) == (1, 2)


def test_the_process_that_builds_a_large_file_is_not_given_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: dict[str, str] = {}
    run = subprocess.run

    def watched(*command: Any, **options: Any) -> Any:
        given.update(options["env"])
        return run(*command, **options)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    monkeypatch.setattr(building, "LARGE", 0)
    monkeypatch.setattr(subprocess, "run", watched)

    warehouse = a_warehouse(tmp_path)

    assert len(rows_of_all_tables(warehouse)["predictions"]) == 1
    assert "PATH" in given
    assert "sk-planted" not in str(given)


def catalog(db: duckdb.DuckDBPyConnection) -> dict[str, Any]:
    """All that a file says about what is in it."""
    parts = ("tables", "columns", "views", "constraints", "functions", "indexes", "sequences")
    # Numbers are given in passing, and the others say how the file is named or how full it is.
    passing = "lambda name: not regexp_matches(name, 'oid$|^database_name$|^estimated_size$')"
    return {
        part: db.sql(
            f"select columns({passing}) from duckdb_{part}() "
            "where database_name = current_database() order by all"
        ).fetchall()
        for part in parts
    }


def test_a_file_has_the_schema_though_that_is_created_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(building, "_BLANKS", {})
    created = []

    def counted(db: duckdb.DuckDBPyConnection) -> None:
        created.append(db)
        create_schema(db)

    monkeypatch.setattr(building, "create_schema", counted)

    for name in ("first", "second"):
        build(tmp_path / name, Order(Journal(tmp_path / "journal"), {}, []))

    with duckdb.connect(str(tmp_path / "alone")) as db:
        create_schema(db)
    with duckdb.connect(str(tmp_path / "alone"), read_only=True) as db:
        made = catalog(db)
    assert all(made[part] for part in ("tables", "columns", "views", "constraints", "functions"))
    assert len(created) == 1
    for name in ("first", "second"):
        with duckdb.connect(str(tmp_path / name), read_only=True) as db:
            assert catalog(db) == made
            assert schema_version(db) == VERSION


def test_a_schema_that_was_changed_since_is_followed_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order = Order(Journal(tmp_path / "journal"), {}, [])
    build(tmp_path / "before", order)
    shutil.copytree(SQL, tmp_path / "sql")
    with (tmp_path / "sql" / "schema" / "recorded.sql").open("a") as file:
        file.write("create table more (one int);")
    monkeypatch.setattr("eval_pipeline.results.queries.SQL", tmp_path / "sql")

    build(tmp_path / "after", order)

    with duckdb.connect(str(tmp_path / "after"), read_only=True) as db:
        assert db.sql("from more").fetchall() == []


def test_a_file_that_is_being_built_has_no_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: set[str] = set()

    def watched(db: duckdb.DuckDBPyConnection, table: str) -> None:
        derive(db, table)
        seen.update(path.name for path in tmp_path.iterdir())

    monkeypatch.setattr(building, "derive", watched)
    journal = a_journal(tmp_path, a_prediction())

    build(tmp_path / "new", Order(journal, {"predictions": "all"}, []))

    assert seen == {"new", "journal"}
    with duckdb.connect(str(tmp_path / "new"), read_only=True) as db:
        assert db.sql("select count(*) from predictions").fetchall() == [(1,)]
        assert db.sql("select part, snapshot from published").fetchall() == [("predictions", "all")]
