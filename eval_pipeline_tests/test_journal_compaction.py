"""Many files become one: the same records, none twice, whatever happens on the way."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.journal import FORMAT, JUDGED, PREDICTIONS, Journal, JournalError
from eval_pipeline.journal.compaction import GRACE_S, WORTH_IT_BYTES, compact
from eval_pipeline.records.prediction import Prediction
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.builders import NOON, a_journal, a_judgement, a_prediction, a_run

MODEL, RUN = "demo/strong", "run-1"
# Dies in the middle of compacting: before the new file is in place, or just after.
KILLED = """
import os, signal, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal
really_replace = Path.replace
def replace(self, target):
    if not str(target).endswith(".parquet"):
        return really_replace(self, target)
    if sys.argv[2] == "after":
        really_replace(self, target)
    os.kill(os.getpid(), signal.SIGKILL)
Path.replace = replace
Journal(Path(sys.argv[1])).compact(PREDICTIONS, "demo/strong", "run-1")
"""


# No file of this process may grow beyond 50,000 bytes.
ON_A_SMALL_DISK = """
import resource, signal, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal, JournalError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
try:
    Journal(Path(sys.argv[1])).compact(PREDICTIONS, "demo/strong", "run-1")
except JournalError as error:
    print(error)
"""


def write(journal: Journal, name: str, *records: Prediction) -> None:
    journal.write_whole(PREDICTIONS, MODEL, RUN, name, records=records)


def a_journal_of_two_files(folder: Path) -> Journal:
    journal = Journal(folder)
    write(journal, "a", a_prediction("q1"), a_prediction("q2"))
    write(journal, "b", a_prediction("q3"))
    return journal


def names(journal: Journal) -> list[str]:
    return [prediction.item_id for prediction in journal.read(PREDICTIONS)]


def kinds(journal: Journal) -> list[str]:
    folder = journal.root / "predictions" / "demo%2Fstrong" / RUN
    return sorted(path.suffix or path.name for path in folder.iterdir())


def let_time_pass(journal: Journal) -> None:
    for path in journal.root.rglob("*.parquet"):
        os.utime(path, (time.time() - GRACE_S - 1,) * 2)


@pytest.mark.parametrize(("answer", "compacted"), [("short", False), ("x" * WORTH_IT_BYTES, True)])
def test_one_file_is_compacted_only_if_it_is_large(
    tmp_path: Path, answer: str, *, compacted: bool
) -> None:
    journal = Journal(tmp_path)
    write(journal, "a", a_prediction(answer=answer))

    journal.compact(PREDICTIONS, MODEL, RUN)

    assert [path.suffix == ".parquet" for path in journal.files(PREDICTIONS)] == [compacted]


def a_large_journal(folder: Path) -> Journal:
    journal = Journal(folder)
    write(journal, "a", a_prediction("q1", answer="x" * WORTH_IT_BYTES), a_prediction("q2"))
    return journal


def test_a_large_run_is_compacted_in_a_process_without_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[dict[str, Any]] = []
    run = subprocess.run

    def watched(*command: Any, **options: Any) -> Any:
        started.append(options["env"])
        return run(*command, **options)

    monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-0123456789")
    monkeypatch.setattr(subprocess, "run", watched)
    journal = a_large_journal(tmp_path)

    journal.compact(PREDICTIONS, MODEL, RUN)

    assert len(started) == 1 and "sk-planted" not in str(started)
    assert names(journal) == ["q1", "q2"]
    assert [path.suffix for path in journal.files(PREDICTIONS)] == [".parquet"]


def test_what_nobody_waits_for_any_more_is_not_swapped_in(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    folder = journal.files(PREDICTIONS)[0].parent

    compact(folder, "new", Prediction, still_wanted=lambda: False)

    assert kinds(journal) == [".jsonl", ".jsonl"]
    assert names(journal) == ["q1", "q2", "q3"]


def test_a_compaction_that_fails_apart_is_told_and_changes_nothing(tmp_path: Path) -> None:
    journal = a_large_journal(tmp_path)
    (spoilt,) = journal.files(PREDICTIONS)
    with spoilt.open("ab") as file:
        file.write(b'{"of": "another version"}\n')

    with pytest.raises(JournalError, match="another version of eval_pipeline"):
        journal.compact(PREDICTIONS, MODEL, RUN)

    assert kinds(journal) == [".jsonl"]


def test_a_run_without_files_needs_no_compaction(tmp_path: Path) -> None:
    Journal(tmp_path).compact(PREDICTIONS, MODEL, RUN)

    assert list(tmp_path.iterdir()) == []


def test_files_without_a_record_are_left_alone(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    write(journal, "a")
    write(journal, "b")

    journal.compact(PREDICTIONS, MODEL, RUN)

    assert kinds(journal) == [".jsonl", ".jsonl"]


def test_the_old_files_stay_for_those_who_read_them_and_count_no_more(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    reading = journal.read(PREDICTIONS)
    first = next(reading)

    journal.compact(PREDICTIONS, MODEL, RUN)

    assert kinds(journal) == [".jsonl", ".jsonl", ".parquet"]
    assert [one.item_id for one in (first, *reading)] == ["q1", "q2", "q3"]
    assert names(journal) == ["q1", "q2", "q3"]
    assert journal.parts(PREDICTIONS) == [MODEL]


def test_old_files_go_when_the_next_writer_comes_after_a_while(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    journal.compact(PREDICTIONS, MODEL, RUN)

    journal.writer(PREDICTIONS, MODEL, RUN)
    soon = kinds(journal)
    let_time_pass(journal)
    before = journal.snapshot()
    journal.writer(PREDICTIONS, MODEL, RUN)

    assert soon == [".jsonl", ".jsonl", ".parquet"]
    assert kinds(journal) == [".parquet"]
    assert journal.snapshot() == before
    assert names(journal) == ["q1", "q2", "q3"]


@pytest.mark.parametrize("old_files", ["are still there", "are gone"])
def test_what_comes_later_is_compacted_together_with_the_parquet_file(
    tmp_path: Path, old_files: str
) -> None:
    journal = a_journal_of_two_files(tmp_path)
    journal.compact(PREDICTIONS, MODEL, RUN)
    if old_files == "are gone":
        let_time_pass(journal)
    write(journal, "c", a_prediction("q4"))
    write(journal, "d", a_prediction("q5"))

    journal.compact(PREDICTIONS, MODEL, RUN)
    at_once = sorted(names(journal))
    let_time_pass(journal)
    journal.writer(PREDICTIONS, MODEL, RUN)

    assert at_once == sorted(names(journal)) == ["q1", "q2", "q3", "q4", "q5"]
    assert kinds(journal) == [".parquet"]


def test_a_file_written_again_under_a_name_that_was_compacted_counts(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    journal.compact(PREDICTIONS, MODEL, RUN)
    let_time_pass(journal)

    write(journal, "b", a_prediction("another"))
    journal.writer(PREDICTIONS, MODEL, RUN)

    assert sorted(names(journal)) == ["another", "q1", "q2", "q3"]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_at_the_swap_nothing_is_lost_or_twice(tmp_path: Path, moment: str) -> None:
    journal = a_journal_of_two_files(tmp_path)

    command = [sys.executable, "-c", KILLED, str(tmp_path), moment]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    left = names(journal)
    write(journal, "c", a_prediction("q4"))
    write(journal, "d", a_prediction("q5"))
    journal.compact(PREDICTIONS, MODEL, RUN)

    assert left == ["q1", "q2", "q3"]
    assert sorted(names(journal)) == ["q1", "q2", "q3", "q4", "q5"]
    assert not list(journal.root.rglob(".compacting-*"))


def test_a_torn_last_line_is_left_out_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    journal = a_journal_of_two_files(tmp_path)
    torn = journal.files(PREDICTIONS)[0]
    torn.write_bytes(torn.read_bytes()[:-20])

    journal.compact(PREDICTIONS, MODEL, RUN)

    assert f"{torn}, line 2 was cut off" in caplog.text
    assert names(journal) == ["q1", "q3"]


def test_a_line_that_is_no_record_stops_it_and_nothing_is_changed(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    stranger = journal.files(PREDICTIONS)[1]
    stranger.write_text(stranger.read_text() + a_run().model_dump_json() + "\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()}

    with pytest.raises(JournalError, match="line 2 is no Prediction"):
        journal.compact(PREDICTIONS, MODEL, RUN)

    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*") if path.is_file()} == before


def test_on_a_full_disk_nothing_is_changed_and_it_is_told(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    records = [a_prediction(f"q{n}", answer=f"{n} " * 2000) for n in range(80)]
    write(journal, "a", *records[:40])
    write(journal, "b", *records[40:])
    command = [sys.executable, "-c", ON_A_SMALL_DISK, str(tmp_path)]

    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "It cannot be written (File too large)" in said
    assert kinds(journal) == [".jsonl", ".jsonl"]
    assert list(journal.read(PREDICTIONS)) == records


def test_an_older_version_refuses_what_it_would_not_see(tmp_path: Path) -> None:
    journal = a_journal_of_two_files(tmp_path)
    (tmp_path / "format").write_text("1\n")

    journal.compact(PREDICTIONS, MODEL, RUN)

    assert (tmp_path / "format").read_text() == f"{FORMAT}\n"


def all_rows(warehouse: Warehouse) -> list[list[tuple[object, ...]]]:
    tables = ("predictions", "judged", "metrics", "leaderboard")
    with warehouse.reading() as db:
        return [db.sql(f"from {name} order by all").fetchall() for name in tables]


@pytest.fixture
def warehouse(tmp_path: Path) -> Iterator[Warehouse]:
    paid: dict[str, Any] = {"usage": {"cost_usd": 0.5, "cost_estimated": False}}
    failed = a_prediction(outcome="timeout", answer=None, prediction_id="first", **paid)
    later = NOON + timedelta(minutes=1)
    answered = a_prediction(answer="a\0😀\u2028", finished_at=later, **paid)
    a_journal(tmp_path, a_run(), failed, a_judgement(answered, None))
    a_journal(tmp_path, answered, a_judgement(answered, finished_at=later, **paid))
    yield Warehouse(tmp_path / "evals.duckdb", Journal(tmp_path / "journal"))


def test_the_database_shows_the_same_before_and_after(warehouse: Warehouse) -> None:
    before = all_rows(warehouse)

    for stream in (PREDICTIONS, JUDGED):
        warehouse.journal.compact(stream, MODEL, RUN)
        assert [path.suffix for path in warehouse.journal.files(stream)] == [".parquet"]
        warehouse.publish()
        assert all_rows(warehouse) == before

    a_journal(warehouse.path.parent, a_prediction("q2"))
    warehouse.publish()
    assert all(before)
    assert len(all_rows(warehouse)[0]) == 2
