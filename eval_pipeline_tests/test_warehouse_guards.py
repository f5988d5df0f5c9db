"""What the DuckDB file is guarded against: newer versions, foreign logs, full disks."""

import shutil
import subprocess
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.journal import JournalError
from eval_pipeline.results.queries import SQL
from eval_pipeline.results.schema import VERSION, create_schema
from eval_pipeline.results.warehouse import Warehouse, WarehouseError
from eval_pipeline_tests.builders import NOON, a_journal, a_prediction, a_warehouse
from eval_pipeline_tests.test_warehouse import rows_of_all_tables, the_warehouse


def read(warehouse: Warehouse) -> None:
    with warehouse.reading() as db:
        db.sql("select 1").fetchall()


@pytest.mark.parametrize(
    "use", [Warehouse.publish, lambda warehouse: warehouse.publish(force=True), read]
)
def test_a_file_of_a_newer_version_is_refused_and_kept(
    tmp_path: Path, use: Callable[[Warehouse], None]
) -> None:
    warehouse = the_warehouse(tmp_path)
    with duckdb.connect(str(warehouse.path)) as newer:
        newer.execute("update schema_version set version = version + 1")
    before = (warehouse.path.stat().st_ino, warehouse.path.read_bytes())
    a_journal(tmp_path, a_prediction("q2"))

    with pytest.raises(WarehouseError, match="written by a newer version"):
        use(warehouse)

    assert (warehouse.path.stat().st_ino, warehouse.path.read_bytes()) == before


def test_a_log_left_beside_the_file_is_set_aside_even_without_news(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    elsewhere = tmp_path / "elsewhere.duckdb"
    with duckdb.connect(str(elsewhere)) as shell:
        shell.execute("create table mine (x int)")
        log = elsewhere.with_name("elsewhere.duckdb.wal").read_bytes()
    warehouse.path.with_name("evals.duckdb.wal").write_bytes(log)

    warehouse.publish()

    with duckdb.connect(str(warehouse.path), read_only=True) as db:
        assert "mine" not in {name for (name,) in db.sql("show tables").fetchall()}
    (aside,) = tmp_path.glob("evals.duckdb.wal.*")
    assert aside.read_bytes() == log


def test_changed_sql_is_news_like_a_changed_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = the_warehouse(tmp_path)
    changed = tmp_path / "sql"
    shutil.copytree(SQL, changed)
    board = changed / "derive" / "leaderboard_entries.sql"
    halved = board.read_text().replace("\n    accuracy,\n", "\n    accuracy / 2 as accuracy,\n", 1)
    board.write_text(halved)
    monkeypatch.setattr("eval_pipeline.results.queries.SQL", changed)

    warehouse.publish()

    with warehouse.reading() as db:
        assert db.sql("select accuracy from leaderboard").fetchall() == [(0.5,)]


def test_earlier_attempts_at_an_item_cost_too(tmp_path: Path) -> None:
    paid = {"usage": {"cost_usd": 0.5, "cost_estimated": False}}
    failed = a_prediction("q1", outcome="empty", **paid)
    answered = a_prediction(
        "q1", finished_at=NOON + timedelta(minutes=1), prediction_id="later", **paid
    )

    warehouse = a_warehouse(tmp_path, failed, answered)

    with warehouse.reading() as db:
        assert db.sql("select outcome, cost_usd from predictions").fetchall() == [("ok", 1.0)]
        assert db.sql("select cost_usd from metrics where slice = 'all'").fetchall() == [(1.0,)]


@pytest.mark.parametrize("name", ["model=x", "suite=y", "run_id=z"])
def test_a_folder_named_like_a_column_changes_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    warehouse = a_warehouse(tmp_path / name)

    with warehouse.reading() as db:
        assert db.sql("select distinct run_id, model from metrics").fetchall() == [
            ("run-1", "demo/strong")
        ]


def test_a_file_that_can_not_be_built_leaves_the_old_one_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse = the_warehouse(tmp_path)
    before = warehouse.path.read_bytes()
    a_journal(tmp_path, a_prediction("q2"))

    def full(*_: object) -> None:
        raise duckdb.IOException("Could not write file: No space left on device")

    monkeypatch.setattr("eval_pipeline.results.build._note", full)
    with pytest.raises(WarehouseError, match=r"all results are in the journal.*evals rebuild"):
        warehouse.publish()

    assert warehouse.path.read_bytes() == before


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False, capture_output=True).returncode != 0:
        pytest.skip("a small disk can only be mounted by root, and not in every container")
    yield disk
    subprocess.run(["umount", disk], check=True)


@pytest.mark.parametrize("room", [100_000, 1_000_000, 2_500_000])
def test_a_disk_that_fills_up_costs_nothing_that_was_there(small_disk: Path, room: int) -> None:
    warehouse = a_warehouse(small_disk)
    before = warehouse.path.read_bytes()
    a_journal(small_disk, a_prediction("q2"))
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(max(0, shutil.disk_usage(small_disk).free - room)))

    with pytest.raises((WarehouseError, JournalError), match=r"[mM]ake room"):
        warehouse.publish()

    assert warehouse.path.read_bytes() == before
    assert list(small_disk.glob(".evals-*")) == []
    ballast.unlink()
    warehouse.publish()
    with warehouse.reading() as db:
        assert db.sql("select count(*) from predictions").fetchall() == [(2,)]


@pytest.mark.parametrize(
    ("hits", "items", "low", "high"),
    [(8, 10, 0.4901625, 0.9433178), (0, 10, 0.0, 0.2775328), (10, 10, 0.7224672, 1.0)],
)
def test_the_interval_is_the_published_one(hits: int, items: int, low: float, high: float) -> None:
    with duckdb.connect() as db:
        create_schema(db)
        found = db.execute("select wilson_low($1, $2), wilson_high($1, $2)", [hits, items])
        (interval,) = found.fetchall()

    assert interval == pytest.approx((low, high), abs=1e-6)


def test_a_share_is_never_outside_of_its_interval() -> None:
    with duckdb.connect() as db:
        create_schema(db)
        outside = db.sql(
            "select n, hits "
            "from range(1, 2000) as sizes(n), (values (0), (1), (n - 1), (n)) as chosen(hits) "
            "where not hits / n between wilson_low(hits, n) and wilson_high(hits, n)"
        ).fetchall()

    assert outside == []


def of_a_release_with_migrations(warehouse: Warehouse, number: int) -> None:
    """Makes the file one that the code wrote which had so many migrations."""
    with duckdb.connect(str(warehouse.path)) as older:
        older.execute("drop table schema_version")
        older.execute("create table schema_migrations (name varchar, applied_at timestamp)")
        for one in range(1, number + 1):
            older.execute(f"insert into schema_migrations values ('{one:04}_some.sql', now())")
        older.execute("update published set snapshot = 'another' where part = 'sql'")
        if number < VERSION:
            older.execute("drop view run_steps")


@pytest.mark.parametrize("number", [18, VERSION])
@pytest.mark.parametrize("publish", [False, True])
def test_a_file_of_a_release_with_migrations_gives_the_same_numbers(
    tmp_path: Path, number: int, *, publish: bool
) -> None:
    warehouse = the_warehouse(tmp_path)
    before = rows_of_all_tables(warehouse)
    of_a_release_with_migrations(warehouse, number)

    if publish:
        warehouse.publish()

    found = rows_of_all_tables(warehouse)
    if number == VERSION and not publish:  # it is read as it is
        assert len(found.pop("schema_migrations")) == VERSION
    assert found == before


def test_a_file_of_the_last_release_with_migrations_is_read_without_its_journal(
    tmp_path: Path,
) -> None:
    warehouse = the_warehouse(tmp_path)
    before = rows_of_all_tables(warehouse)
    of_a_release_with_migrations(warehouse, VERSION)
    shutil.rmtree(warehouse.journal.root)

    warehouse.publish()

    found = rows_of_all_tables(warehouse)
    assert {name: found[name] for name in before} == before


def test_an_older_file_without_its_journal_is_refused_and_kept(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    of_a_release_with_migrations(warehouse, 18)
    shutil.rmtree(warehouse.journal.root)
    before = warehouse.path.read_bytes()

    for use in (Warehouse.publish, read):
        with pytest.raises(WarehouseError, match=r"older version.*no journal.* to build it from"):
            use(warehouse)

    assert warehouse.path.read_bytes() == before


def test_a_file_that_stands_alone_is_never_replaced_by_an_empty_one(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    shutil.rmtree(warehouse.journal.root)
    before = warehouse.path.read_bytes()

    warehouse.publish()
    with pytest.raises(WarehouseError, match="stands alone"):
        warehouse.publish(force=True)

    with warehouse.reading() as db:
        assert db.table("judged").shape[0] == 1
    assert warehouse.path.read_bytes() == before


def test_an_older_file_where_it_can_not_be_replaced_is_said_to_be_one(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    of_a_release_with_migrations(warehouse, 18)
    warehouse.path.with_suffix(".lock").unlink(missing_ok=True)
    warehouse.path.with_suffix(".lock").mkdir()  # so that not even root can claim it

    with (
        pytest.raises(WarehouseError, match=r"older version.* It cannot be written"),
        warehouse.reading(),
    ):
        pass

    with warehouse.reading(apart=True) as db:  # for people's own SQL it will do
        assert db.sql("select count(*) from judged").fetchone() == (1,)
