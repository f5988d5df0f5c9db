"""The file people query: whole, up to date, never blocked and never spoilt by anybody's shell."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

import pytest

from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import (
    ATTEMPTS,
    DIAGNOSES,
    LABELS,
    PREDICTIONS,
    RECLASSIFIED,
    REJUDGED,
    SIGHTINGS,
    STREAMS,
    Journal,
)
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Label, Repeat
from eval_pipeline.records.run import Attempt
from eval_pipeline.results.warehouse import Warehouse, covers, shown_of
from eval_pipeline_tests.builders import (
    NOON,
    a_diagnosis,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_reclassification,
    a_run,
    a_warehouse,
    graded_code,
)

LATER = NOON + timedelta(minutes=1)
PROCESSES, ROUNDS, ROWS = 4, 3, 40

# Somebody's shell: opens the file to write, executes each line and keeps it open.
SHELL = """
import json, sys, duckdb
db = duckdb.connect(sys.argv[1])
print("open", flush=True)
for line in sys.stdin:
    print(json.dumps(db.execute(line).fetchall()), flush=True)
"""

COUNTS = "select (select count(*) from mine), (select count(*) from predictions)"

LANDER = """
import asyncio, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.records.prediction import Prediction
from eval_pipeline.results.warehouse import Warehouse
folder, rounds, rows, name = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[5]
prediction = Prediction.model_validate_json(sys.argv[4])
def named(name):
    return prediction.model_copy(update={"item_id": name, "prediction_id": name})
warehouse = Warehouse(folder / "evals.duckdb", Journal(folder / "journal"))
async def main():
    async with warehouse.journal.writer(PREDICTIONS, "demo/strong", "run-1") as writer:
        for n in range(rounds):
            mine = [named(f"{name}-{n}-{row}") for row in range(rows)]
            await asyncio.gather(*map(writer.append, mine))
            warehouse.publish()
            with warehouse.reading() as db:
                seen = db.sql(f"from predictions where item_id like '{name}-%'").fetchall()
            assert len(seen) == (n + 1) * rows, len(seen)
asyncio.run(main())
"""

# Dies when the new file is built, and not yet swapped in.
KILLED_PUBLISHER = """
import os, signal, sys
from pathlib import Path
from eval_pipeline.journal import Journal
from eval_pipeline.results.warehouse import Warehouse
os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
Warehouse(Path(sys.argv[1], "evals.duckdb"), Journal(Path(sys.argv[1], "journal"))).publish()
"""


@cache
def _published() -> dict[Path, bytes]:
    with TemporaryDirectory() as folder:
        a_warehouse(Path(folder))
        files = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {path.relative_to(folder): path.read_bytes() for path in files}


def the_warehouse(folder: Path) -> Warehouse:
    """That of `a_warehouse()`, built once for all tests."""
    for name, content in _published().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return Warehouse(folder / "evals.duckdb", Journal(folder / "journal"))


def rows_of_all_tables(warehouse: Warehouse) -> dict[str, list[tuple[object, ...]]]:
    with warehouse.reading() as db:
        return {
            name: db.sql(f"from {name} order by all").fetchall()
            for (name,) in db.sql("show tables").fetchall()
            # The last of them tells ages, which grow from one look to the next.
            if name not in {"published", "schema_version", "freshness"}
        }


def answers(warehouse: Warehouse) -> list[tuple[object, ...]]:
    with warehouse.reading() as db:
        return db.sql("select item_id, answer from predictions order by all").fetchall()


def tables(warehouse: Warehouse) -> set[str]:
    with warehouse.reading() as db:
        return {name for (name,) in db.sql("show tables").fetchall()}


@contextmanager
def a_shell(path: Path) -> Iterator[Callable[[str], object]]:
    command, pipe = [sys.executable, "-c", SHELL, str(path)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin and process.stdout
        typed, shown = process.stdin, process.stdout
        assert shown.readline() == "open\n"

        def say(sql: str) -> object:
            typed.write(sql + "\n")
            typed.flush()
            return json.loads(shown.readline())

        yield say


def test_publishing_makes_every_table_even_of_an_empty_journal(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path / "data" / "evals.duckdb", Journal(tmp_path / "journal"))

    warehouse.publish()

    named_like_assets = {"dataset", "model_catalog", "predictions", "judged", "metrics"}
    named_like_assets |= {"comparisons", "leaderboard", "judge_reliability"}
    loaded = {"benchmark_versions", "items", "runs", "plans", "steps", "rejudged", "human_labels"}
    derived = {"pass_at_k", "calibration_bins", "leaderboard_entries", "leaderboard_slices"}
    loaded |= {"attempts", "diagnoses", "reclassified"}
    views = {"metrics_strict", "metrics_moderate", "freshness", "run_standing", "run_steps"}
    views.add("failure_analysis")
    ours = named_like_assets | loaded | derived | views
    assert tables(warehouse) == ours | {"published", "schema_version"}
    assert not any(rows_of_all_tables(warehouse).values())


def test_the_file_is_replaced_only_when_there_is_something_new(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    warehouse.publish()
    first = warehouse.path.stat()

    warehouse.publish()
    second = warehouse.path.stat()
    a_journal(tmp_path, a_prediction("q2"))
    warehouse.publish()

    assert (second.st_ino, second.st_mtime_ns) == (first.st_ino, first.st_mtime_ns)
    assert warehouse.path.stat().st_mtime_ns != first.st_mtime_ns
    assert answers(warehouse) == [("q1", "42"), ("q2", "42")]


def fill_the_rest(warehouse: Warehouse, folder: Path) -> None:
    """What takes more than a run: a catalog, many samples by another model, labels, repetitions."""
    named = {"run_id": "many", "model": "demo/weak"}
    samples = [a_prediction(**named, sample=n, prediction_id=f"many {n}") for n in range(100)]
    verdicts = [a_judgement(one, one.sample % 2, confidence=0.7) for one in samples]
    verdicts[0] = verdicts[0].model_copy(update={"code": graded_code()})
    a_journal(folder, a_run("many", "demo/weak", samples=100), *samples, *verdicts)
    written = warehouse.journal.write_whole
    sighting = Sighting(model=a_model(), selected=True, seen_at=NOON)
    repeat = Repeat.model_validate({**verdicts[0].model_dump(), "repeat": 1})
    kind = {"experiment": "default", "filtered": False, "repair": False, "began_at": NOON}
    written(SIGHTINGS, "now", records=[sighting])
    written(ATTEMPTS, "demo/weak", "many", records=[Attempt.model_validate({**named, **kind})])
    written(REJUDGED, "demo/weak", "many", "once", records=[repeat])
    written(LABELS, "now", records=[Label(line=2, item_id="q1", correct=True)])
    written(DIAGNOSES, "demo/weak", "many", "once", records=[a_diagnosis(verdicts[0])])
    written(RECLASSIFIED, "demo/weak", "many", "once", records=[a_reclassification(verdicts[0])])


def test_a_deleted_file_is_built_again_with_the_same_rows(tmp_path: Path) -> None:
    warehouse = a_warehouse(tmp_path, *(a_prediction(f"q{n}") for n in range(3)))
    fill_the_rest(warehouse, tmp_path)
    warehouse.publish()
    before = rows_of_all_tables(warehouse)

    warehouse.path.unlink()
    warehouse.publish()

    assert all(before.values())
    assert rows_of_all_tables(warehouse) == before


@pytest.mark.parametrize("content", ["torn", "", "\n", "\0" * 5000, "torn and\nnothing"])
def test_torn_lines_and_files_without_rows_do_not_disturb(tmp_path: Path, content: str) -> None:
    warehouse = the_warehouse(tmp_path)
    before = rows_of_all_tables(warehouse)
    for stream in STREAMS:
        files = warehouse.journal.files(stream)
        half = files[0].read_text()[:-20] if files else '{"model":{"id":"de'
        torn = warehouse.journal.root / stream.name / "zz" / "abc.jsonl"
        torn.parent.mkdir(parents=True)
        torn.write_text(content.replace("torn", half))

    warehouse.publish()

    assert rows_of_all_tables(warehouse) == before


def test_the_later_line_for_an_item_wins_wherever_it_is(tmp_path: Path) -> None:
    late = a_prediction(prediction_id="late", answer="43", finished_at=LATER)
    early = a_prediction(prediction_id="early", outcome="timeout", answer=None)
    other = a_prediction("q2")

    warehouse = a_warehouse(tmp_path, late, other)
    a_journal(tmp_path, early)
    warehouse.publish()

    assert answers(warehouse) == [("q1", "43"), ("q2", "42")]


def test_a_verdict_on_a_replaced_prediction_no_longer_stands(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    assert rows_of_all_tables(warehouse)["judged"]

    a_journal(tmp_path, a_prediction(prediction_id="again", finished_at=LATER))
    warehouse.publish()

    assert rows_of_all_tables(warehouse)["judged"] == []


@pytest.mark.parametrize(("later", "standing"), [(None, 1.0), (0.0, 0.0)])
def test_a_later_score_replaces_a_score_and_a_later_failure_to_judge_does_not(
    tmp_path: Path, later: float | None, standing: float
) -> None:
    warehouse = the_warehouse(tmp_path)

    a_journal(tmp_path, a_judgement(a_prediction(), later, finished_at=LATER))
    warehouse.publish()

    with warehouse.reading() as db:
        assert db.sql("select score, outcome from judged").fetchall() == [(standing, "ok")]


def test_a_shell_kept_open_blocks_nobody_and_changes_no_row_of_ours(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)

    with a_shell(warehouse.path) as say:
        say("create table mine as select 1 as one")
        a_journal(tmp_path, a_prediction("q2"))
        seen_while_locked = answers(warehouse)
        warehouse.publish()
        say("insert into mine values (2)")
        in_the_shell = say(COUNTS)
        say("delete from predictions")
        seen_meanwhile, meanwhile = answers(warehouse), tables(warehouse)

    assert in_the_shell == [[2, 1]]
    assert seen_while_locked == seen_meanwhile == [("q1", "42"), ("q2", "42")]
    assert "mine" not in meanwhile | tables(warehouse)
    assert answers(warehouse) == seen_meanwhile


def test_a_shell_that_writes_first_after_the_swap_leaves_nothing_with_us(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    log_of_the_shell = tmp_path / "evals.duckdb.wal"

    with a_shell(warehouse.path) as say:
        a_journal(tmp_path, a_prediction("q2"))
        warehouse.publish()
        say("create table mine as select 1 as one")
        left_beside = log_of_the_shell.exists()
        meanwhile = tables(warehouse)
        a_journal(tmp_path, a_prediction("q3"))
        warehouse.publish()
        moved_aside = not log_of_the_shell.exists()
        in_the_shell = say(COUNTS)

    assert (left_beside, moved_aside) == (True, True)
    assert list(tmp_path.glob("evals.duckdb.wal.*"))
    assert in_the_shell == [[1, 1]]
    assert "mine" not in meanwhile | tables(warehouse)
    assert [item for item, _ in answers(warehouse)] == ["q1", "q2", "q3"]


@pytest.mark.slow
def test_processes_at_once_lose_no_row_and_disturb_no_reader(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    given = [str(tmp_path), str(ROUNDS), str(ROWS), a_prediction().model_dump_json()]
    command = [sys.executable, "-c", LANDER, *given]
    seen: list[tuple[int]] = []

    with ExitStack() as running:
        started = (subprocess.Popen([*command, f"p{n}"]) for n in range(PROCESSES))
        landers = [running.enter_context(lander) for lander in started]
        while any(lander.poll() is None for lander in landers):
            with warehouse.reading() as db:
                seen += db.sql("select count(*) from predictions").fetchall()
            time.sleep(0.4)

    assert [lander.returncode for lander in landers] == [0] * PROCESSES
    assert seen == sorted(seen)
    rows = answers(warehouse)
    assert len(rows) == len(set(rows)) == 1 + PROCESSES * ROUNDS * ROWS


@pytest.mark.parametrize("published", [True, False])
def test_who_waits_to_publish_does_nothing_if_that_was_published_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, published: bool
) -> None:
    warehouse, waits = the_warehouse(tmp_path), Event()
    journal = warehouse.journal
    mine, of_others = (a_prediction("q1", run_id=name) for name in ("mine", "others"))
    journal.write_whole(PREDICTIONS, "demo/strong", "mine", records=[mine])

    def seen(*given: Any) -> dict[str, list[str]]:
        found = shown_of(*given)
        waits.set()
        return found

    monkeypatch.setattr("eval_pipeline.results.warehouse.shown_of", seen)
    with warehouse.claim():
        thread = Thread(target=warehouse.publish)
        thread.start()
        assert waits.wait(20)
        if published:
            warehouse._publish((), force=False)
        journal.write_whole(PREDICTIONS, "demo/strong", "others", records=[of_others])
    thread.join()

    with warehouse.reading() as db:
        runs = db.sql("select run_id from predictions where run_id in ('mine', 'others')")
        # Who had nothing done for it builds the file, with all that is there by then.
        assert len(runs.fetchall()) == (1 if published else 2)


@pytest.mark.parametrize(
    ("shown", "wanted", "is_covered"),
    [
        (["a 5", "b 7"], ["a 5"], True),
        (["a 6"], ["a 5"], True),
        (["a 4"], ["a 5"], False),
        (["b 7"], ["a 5"], False),
        (["a 5 123"], ["a 5 122"], False),
        ([], [], True),
    ],
)
def test_a_file_covers_what_is_in_it_or_has_grown_since(
    shown: list[str], wanted: list[str], *, is_covered: bool
) -> None:
    known = {"predictions": fingerprint(*shown)}

    assert covers({"predictions": shown}, known, {"predictions": wanted}) is is_covered
    # What was noted beside another file says nothing about this one.
    assert not covers({"predictions": shown}, {"predictions": "other"}, {"predictions": wanted})


def test_what_a_killed_publisher_left_is_removed_and_the_old_file_stays(tmp_path: Path) -> None:
    warehouse = the_warehouse(tmp_path)
    a_journal(tmp_path, a_prediction("q2"))

    command = [sys.executable, "-c", KILLED_PUBLISHER, str(tmp_path)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    left, seen = list(tmp_path.glob(".*.new")), answers(warehouse)
    spilled = tmp_path / f"{left[0].name}.spill" / "duckdb_temp_storage-0.tmp"
    spilled.parent.mkdir()
    spilled.write_text("what did not fit into memory")
    (tmp_path / ".evals-999999999-0a1b.reading").write_text("of a process that is gone")
    warehouse.publish()

    assert len(left) == 1
    assert seen == [("q1", "42")]
    assert {path.name for path in tmp_path.iterdir()} == {
        ".evals.shown",
        "evals.duckdb",
        "evals.lock",
        "journal",
    }
    assert answers(warehouse) == [("q1", "42"), ("q2", "42")]
