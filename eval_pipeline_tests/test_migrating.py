"""Files of every older schema become what this version would have built, and are never lost."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest

from eval_pipeline import migrating
from eval_pipeline.building import FOR_LITTLE
from eval_pipeline.deriving import DERIVED
from eval_pipeline.journal import FORMAT, SIGHTINGS, Journal
from eval_pipeline.migrating import (
    BACKUPS,
    MigrationError,
    State,
    backups,
    bring_up,
    journal_state,
    latest,
    migrate,
    number,
    pending,
    schema_of,
)
from eval_pipeline.opening import opened
from eval_pipeline.queries import apply_migration, migration_names
from eval_pipeline.records import Sighting
from eval_pipeline.warehouse import Warehouse, WarehouseError
from eval_pipeline_tests.builders import NOON, a_model, a_prediction, a_warehouse, settings_in
from eval_pipeline_tests.project import call, environment
from eval_pipeline_tests.test_warehouse import rows_of_all_tables

Row = dict[str, object]
Rows = dict[str, list[tuple[object, ...]]]
KEPT = ("benchmark_versions", "items", "model_catalog", "runs", "plans", "predictions", "judged")
"""The tables of the first schema that are not computed from others."""
OLD = 7
"""A schema in the middle, where it does not matter which."""
# Dies when the migration of that number is to be applied.
KILLED = """
import os, signal, sys
from pathlib import Path
from eval_pipeline.journal import Journal
from eval_pipeline.migrating import migrate
from eval_pipeline.warehouse import Warehouse
folder = Path(sys.argv[1])
def tell(words):
    if f": {sys.argv[2]}_" in words:
        os.kill(os.getpid(), signal.SIGKILL)
migrate(Warehouse(folder / "evals.duckdb", Journal(folder / "journal")), tell=tell)
"""


class Fixture(NamedTuple):
    """A file of some schema, and what is in the tables that are kept."""

    content: bytes
    rows: Rows


Released = dict[int, Fixture]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """What this version makes of a journal."""
    folder = tmp_path_factory.mktemp("built")
    seen = Sighting(model=a_model(), selected=True, seen_at=NOON)
    Journal(folder / "journal").write_whole(SIGHTINGS, "first", records=[seen])
    used = {"output_tokens": 10}
    return a_warehouse(folder, a_prediction(latency_s=3.0, first_token_s=1.0, usage=used))


@pytest.fixture(scope="module")
def released(built: Warehouse, tmp_path_factory: pytest.TempPathFactory) -> Released:
    """A file of every schema there ever was, with the same results in it."""
    folder, files = tmp_path_factory.mktemp("released"), {}
    growing, file = folder / "growing.duckdb", folder / "evals.duckdb"
    with built.reading() as db:
        shown = {
            table: [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]
            for table in (*KEPT, *DERIVED)
            if (found := db.table(table))
        }
    with duckdb.connect(str(growing), config={**FOR_LITTLE}) as older:
        older.execute(
            "create table schema_migrations (name varchar primary key, applied_at timestamp)"
        )
        for name in migration_names():
            apply_migration(older, name)
            older.execute("checkpoint")
            shutil.copyfile(growing, file)
            with duckdb.connect(str(file), config={**FOR_LITTLE}) as db:
                fill(db, shown)
                rows = rows_kept(db)
            files[number(name)] = Fixture(file.read_bytes(), rows)
    return files


def fill(db: duckdb.DuckDBPyConnection, shown: dict[str, list[Row]]) -> None:
    """The rows as far as the tables of that time have columns for them."""
    there = {name for (name,) in db.sql("show tables").fetchall()}
    for table, rows in shown.items():
        if table in there:
            columns = db.table(table).columns
            for row in rows:
                known = {name: value for name, value in row.items() if name in columns}
                places = ", ".join("?" * len(known))
                insert = f"insert into {table} ({', '.join(known)}) values ({places})"
                db.execute(insert, list(known.values()))


@pytest.fixture
def alone(released: Released, tmp_path: Path) -> Callable[[int], Warehouse]:
    """Puts a file of that schema where there is no journal."""

    def put(schema: int) -> Warehouse:
        (tmp_path / "evals.duckdb").write_bytes(released[schema].content)
        return Warehouse(tmp_path / "evals.duckdb", Journal(tmp_path / "journal"))

    return put


def silent(_: str) -> None:
    """Nobody is told."""


def unfinished(warehouse: Warehouse) -> list[Path]:
    return list(warehouse.path.parent.glob(".evals-*"))


def rows_kept(db: duckdb.DuckDBPyConnection) -> Rows:
    return {name: db.sql(f"from {name} order by all").fetchall() for name in KEPT}


# From there on it is a file of the next schema, so that this goes for all ways to the last.
@pytest.mark.parametrize("schema", range(1, latest()))
def test_a_file_of_every_schema_becomes_one_of_the_next(
    released: Released, alone: Callable[[int], Warehouse], schema: int
) -> None:
    path = alone(schema).path

    bring_up(path, [migration_names()[schema]], whole=False, tell=silent)

    with opened(path) as db:
        assert rows_kept(db) == released[schema + 1].rows


@pytest.mark.parametrize("schema", [1, 12])
def test_a_file_of_any_schema_becomes_what_building_it_would_give(
    built: Warehouse, alone: Callable[[int], Warehouse], schema: int
) -> None:
    warehouse = alone(schema)
    before = warehouse.path.read_bytes()

    applied = migrate(warehouse, tell=silent)

    assert [number(name) for name in applied] == list(range(schema + 1, latest() + 1))
    assert rows_of_all_tables(warehouse) == rows_of_all_tables(built)
    assert schema_of(warehouse.path).state is State.CURRENT
    (backup,) = backups(warehouse.path)
    assert (backup.name, backup.read_bytes()) == (f"evals.duckdb.before-{schema + 1:04}", before)
    assert unfinished(warehouse) == []


def test_what_was_killed_in_the_middle_goes_on_there(
    built: Warehouse, alone: Callable[[int], Warehouse]
) -> None:
    warehouse, told = alone(OLD), list[str]()
    before = warehouse.path.read_bytes()
    command = [sys.executable, "-c", KILLED, str(warehouse.path.parent), f"{OLD + 3:04}"]
    killed = subprocess.run(command, env=environment(), check=False)
    left = warehouse.path.read_bytes()

    migrate(warehouse, tell=told.append)

    assert killed.returncode == -signal.SIGKILL
    assert left == before
    assert told[0].startswith(f"3 of {len(told) + 2}: {OLD + 3:04}_")
    assert rows_of_all_tables(warehouse) == rows_of_all_tables(built)
    assert unfinished(warehouse) == []


def test_an_unfinished_copy_of_another_file_is_not_gone_on_with(
    released: Released, alone: Callable[[int], Warehouse]
) -> None:
    warehouse, told = alone(OLD), list[str]()

    def stop(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        migrate(warehouse, OLD + 2, tell=stop)
    assert len(unfinished(warehouse)) == 1
    alone(OLD + 1)

    migrate(warehouse, OLD + 2, tell=told.append)

    assert told[0].startswith("1 of 1: ")
    assert unfinished(warehouse) == []


def test_a_migration_that_fails_leaves_the_file_as_it_was(
    alone: Callable[[int], Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = alone(OLD)
    before = warehouse.path.read_bytes()

    def fail(db: duckdb.DuckDBPyConnection, name: str) -> None:
        apply_migration(db, name)
        if number(name) == OLD + 2:
            raise duckdb.IOException("No space left on device")

    monkeypatch.setattr(migrating, "apply_migration", fail)
    with pytest.raises(WarehouseError, match=r"No space left on device.*evals migrate up"):
        migrate(warehouse, tell=silent)

    assert warehouse.path.read_bytes() == before
    assert [*backups(warehouse.path), *unfinished(warehouse)] == []


def test_only_the_last_backups_are_kept_and_the_newest_among_them(
    alone: Callable[[int], Warehouse],
) -> None:
    for schema in ("0015", "0016", "0017", "0018"):
        alone(OLD).path.with_name(f"evals.duckdb.before-{schema}").touch()
    warehouse = alone(OLD)

    migrate(warehouse, OLD + 1, tell=silent)

    kept = [one.name[-4:] for one in backups(warehouse.path)]
    assert len(kept) == BACKUPS
    assert kept == [f"{OLD + 1:04}", "0017", "0018"]


def test_migrating_may_stop_on_the_way_and_not_turn_back(
    built: Warehouse, alone: Callable[[int], Warehouse]
) -> None:
    warehouse = alone(OLD)

    some = migrate(warehouse, OLD + 2, tell=silent)

    assert [number(name) for name in some] == [OLD + 1, OLD + 2]
    assert schema_of(warehouse.path).number == OLD + 2
    for wrong in (OLD, latest() + 1):
        with pytest.raises(MigrationError, match=f"schema {OLD + 2}, there is no way back"):
            migrate(warehouse, wrong, tell=silent)
    migrate(warehouse, latest(), tell=silent)
    assert rows_of_all_tables(warehouse) == rows_of_all_tables(built)


def test_a_file_with_a_journal_is_built_from_it(
    built: Warehouse, alone: Callable[[int], Warehouse]
) -> None:
    warehouse = alone(OLD)
    shutil.copytree(built.journal.root, warehouse.journal.root)

    with pytest.raises(MigrationError, match="stands alone"):
        migrate(warehouse, OLD + 1, tell=silent)
    applied = migrate(warehouse, tell=silent)

    assert len(applied) == latest() - OLD
    assert rows_of_all_tables(warehouse) == rows_of_all_tables(built)
    assert backups(warehouse.path) == []
    assert pending(warehouse) == []


def test_a_file_of_a_newer_version_is_refused(alone: Callable[[int], Warehouse]) -> None:
    warehouse = alone(OLD)
    with duckdb.connect(str(warehouse.path)) as db:
        db.execute("insert into schema_migrations values ('9999_future.sql', now()::timestamp)")
    before = warehouse.path.read_bytes()

    with pytest.raises(WarehouseError, match=r"newer version.*9999_future\.sql"):
        migrate(warehouse, tell=silent)

    assert schema_of(warehouse.path).state is State.NEWER
    assert warehouse.path.read_bytes() == before


def test_a_step_that_takes_long_tells_how_far_it_is(
    alone: Callable[[int], Warehouse], monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, told = alone(OLD), list[str]()
    monkeypatch.setattr(migrating, "EVERY_S", 0.0001)

    migrate(warehouse, OLD + 1, tell=told.append)

    assert len(told) > 1
    assert all(words.startswith(f"1 of 1: {OLD + 1:04}_") for words in told)
    assert told[1].endswith(" % of the present statement")


def test_changes_that_are_only_in_the_log_are_not_left_behind(
    alone: Callable[[int], Warehouse],
) -> None:
    warehouse = alone(OLD)
    warehouse.path.with_name("evals.duckdb.wal").write_bytes(b"somebody's")

    with pytest.raises(WarehouseError, match=r"changes that are not in evals\.duckdb"):
        migrate(warehouse, tell=silent)


def test_an_older_file_where_nobody_can_write_is_said_to_be_one(
    alone: Callable[[int], Warehouse],
) -> None:
    warehouse = alone(OLD)
    warehouse.path.with_suffix(".lock").mkdir()  # so that not even root can claim it

    with (
        pytest.raises(WarehouseError, match=r"older version.* It cannot be written"),
        warehouse.reading(),
    ):
        pass

    with warehouse.reading(apart=True) as db:  # for people's own SQL it will do
        assert db.sql("select count(*) from judged").fetchone() == (1,)


@pytest.mark.parametrize("content", [b"", b"no database" * 1000])
def test_what_is_no_file_of_ours_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "evals.duckdb"
    path.write_bytes(content)

    with pytest.raises(WarehouseError, match=r"can not be opened|no file of eval_pipeline"):
        schema_of(path)


def test_a_file_that_stands_alone_is_never_replaced_by_an_empty_one(
    alone: Callable[[int], Warehouse],
) -> None:
    warehouse = alone(latest())
    before = warehouse.path.read_bytes()

    warehouse.publish()
    with pytest.raises(WarehouseError, match="stands alone"):
        warehouse.publish(force=True)

    with warehouse.reading() as db:
        assert db.table("judged").shape[0] == 1
    assert warehouse.path.read_bytes() == before


@pytest.mark.parametrize(
    ("written", "state"),
    [
        (None, State.NONE),
        ("3", State.BEHIND),
        (f"{FORMAT}", State.CURRENT),
        (f"{FORMAT + 1}", State.NEWER),
        ("x", State.NEWER),
    ],
)
def test_the_journal_has_a_format_of_its_own(
    tmp_path: Path, written: str | None, state: State
) -> None:
    if written is not None:
        (tmp_path / "format").write_text(f"{written}\n")

    assert journal_state(Journal(tmp_path)) is state


def test_the_commands_tell_how_far_the_file_is_and_bring_it_up(
    released: Released, tmp_path: Path
) -> None:
    database = settings_in(tmp_path).database
    database.parent.mkdir(exist_ok=True)
    database.write_bytes(released[latest() - 1].content)
    last = migration_names()[-1]

    before = call(tmp_path, "evals migrate status")
    planned = call(tmp_path, "evals migrate up --dry-run --json")
    refused = call(tmp_path, "evals leaderboard")
    done = call(tmp_path, "evals migrate up")
    after = call(tmp_path, "evals migrate status --json")
    again = call(tmp_path, "evals migrate up")

    assert f"schema {latest() - 1} of {latest()}. Next: evals migrate up" in before.stdout
    assert "the file stands alone" in before.stdout
    assert json.loads(planned.stdout) == {"migrations": [last], "rebuilt": False, "done": False}
    assert (refused.returncode, "evals migrate up" in refused.stderr) == (1, True)
    assert f"migrated to schema {latest()}." in done.stdout
    assert f"1 of {1 + len(DERIVED)}: {last}" in done.stderr
    document = json.loads(after.stdout)
    assert (document["state"], document["missing"]) == ("current", [])
    assert document["journal"] == {
        "folder": str(settings_in(tmp_path).journal),
        "state": "none",
        "format": None,
        "latest": FORMAT,
    }
    assert "nothing to do" in again.stdout
    assert call(tmp_path, "evals rebuild").returncode == 1
    assert "demo/strong" in call(tmp_path, "evals leaderboard").stdout


def test_a_wrong_number_is_wrong_use(released: Released, tmp_path: Path) -> None:
    database = settings_in(tmp_path).database
    database.parent.mkdir(exist_ok=True)
    database.write_bytes(released[OLD].content)

    done = call(tmp_path, "evals migrate up --to 9999 --json")

    assert done.returncode == 2
    assert json.loads(done.stdout)["ended"] == "wrong use"


def test_a_journal_of_a_newer_version_is_told_and_refused(tmp_path: Path) -> None:
    journal = settings_in(tmp_path).journal
    journal.mkdir(parents=True)
    (journal / "format").write_text(f"{FORMAT + 1}\n")

    told = call(tmp_path, "evals migrate status")
    refused = call(tmp_path, "evals migrate up")

    assert f"format {FORMAT + 1}, and this version reads up to {FORMAT}: update" in told.stdout
    assert (refused.returncode, "update eval_pipeline" in refused.stderr) == (1, True)
