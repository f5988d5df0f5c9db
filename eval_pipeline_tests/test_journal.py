"""What is journalled stays: through torn lines, full disks, killed processes and newer versions."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import accumulate
from logging import INFO, LogRecord, getLogger
from logging.handlers import QueueHandler
from pathlib import Path
from queue import Queue
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline.journal import FORMAT, PREDICTIONS, RUNS, Journal, JournalError
from eval_pipeline.records.prediction import Prediction
from eval_pipeline_tests.builders import a_prediction, a_run

MODEL = "demo/strong"

HOLDER = """
import asyncio, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal
async def main():
    async with Journal(Path(sys.argv[1])).claim(PREDICTIONS, sys.argv[2]):
        print("held", flush=True)
        sys.stdin.readline()
asyncio.run(main())
"""

# Being alone in there is proved by a file that must not be there yet.
CONTENDER = """
import asyncio, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal
async def main():
    journal, inside = Journal(Path(sys.argv[1])), Path(sys.argv[1], "inside")
    print("ready", flush=True)
    sys.stdin.readline()
    for _ in range(3):
        async with journal.claim(PREDICTIONS, sys.argv[2]):
            inside.touch(exist_ok=False)
            await asyncio.sleep(0.05)
            inside.unlink()
asyncio.run(main())
"""

# Writes three runs over an older one, and is killed on the way.
KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline_tests.builders import a_run
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
def records():
    yield from (a_run(parameters={"text": "x" * 100_000}) for _ in range(3))
    if sys.argv[2] == "while writing":
        die()
if sys.argv[2] == "before the swap":
    Path.replace = die
Journal(Path(sys.argv[1])).write_whole(RUNS, "demo/strong", "run-1", records=records())
"""


@contextmanager
def a_process(code: str, *arguments: object) -> Iterator[subprocess.Popen[str]]:
    """Another Python process that has said its first word."""
    command, pipe = [sys.executable, "-c", code, *map(str, arguments)], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline()
            yield process
        finally:
            process.kill()


@given(answers=st.lists(st.text(), min_size=1, max_size=4), data=st.data())
@settings(max_examples=60, deadline=None)
def test_any_beginning_of_a_file_holds_the_beginning_of_its_records(
    answers: list[str], data: st.DataObject
) -> None:
    records = [a_prediction(f"q{n}", answer=answer) for n, answer in enumerate(answers)]
    ends = list(accumulate(len(record.model_dump_json().encode()) + 1 for record in records))
    cut = data.draw(st.integers(0, ends[-1]))

    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder))
        journal.write_whole(PREDICTIONS, MODEL, "run-1", records=records)
        os.truncate(journal.files(PREDICTIONS)[0], cut)
        recovered = list(journal.read(PREDICTIONS))

    assert recovered == records[: sum(end - 1 <= cut for end in ends)]


@given(answers=st.lists(st.text(), min_size=1, max_size=4), data=st.data())
@settings(max_examples=40, deadline=None)
def test_after_a_crash_the_next_writer_goes_on_and_only_the_torn_record_is_gone(
    answers: list[str], data: st.DataObject
) -> None:
    records = [a_prediction(f"q{n}", answer=answer) for n, answer in enumerate(answers)]
    ends = list(accumulate(len(record.model_dump_json().encode()) + 1 for record in records))
    cut = data.draw(st.integers(0, ends[-1]))
    after = a_prediction("after")

    async def write(journal: Journal, *written: Prediction) -> None:
        async with journal.writer(PREDICTIONS, MODEL, "run-1") as writer:
            for record in written:
                await writer.append(record)

    with TemporaryDirectory() as folder:
        journal = Journal(Path(folder))
        asyncio.run(write(journal, *records))
        os.truncate(journal.files(PREDICTIONS)[0], cut)
        asyncio.run(write(journal, after))
        recovered = list(journal.read(PREDICTIONS))

    assert recovered == [*records[: sum(end - 1 <= cut for end in ends)], after]


async def _claim(journal: Journal) -> None:
    async with journal.claim(PREDICTIONS, MODEL):
        pass


WAYS_TO_WRITE: dict[str, Callable[[Journal], object]] = {
    "writer": lambda journal: journal.writer(PREDICTIONS, MODEL, "run-1"),
    "write_whole": lambda journal: journal.write_whole(RUNS, MODEL, "run-1", records=[a_run()]),
    "claim": lambda journal: asyncio.run(_claim(journal)),
}


@pytest.mark.parametrize("way", WAYS_TO_WRITE)
def test_a_folder_that_can_not_be_made_is_explained(tmp_path: Path, way: str) -> None:
    (tmp_path / "data").write_text("a file where the folder should be")
    journal = Journal(tmp_path / "data" / "journal")

    with pytest.raises(JournalError) as raised:
        WAYS_TO_WRITE[way](journal)

    advice = "It cannot be written (Not a directory). Fix that and materialize again."
    assert str(raised.value).endswith(advice)


@pytest.mark.parametrize("written_by_then", [str(FORMAT + 1), "99", "2.1-beta"])
def test_a_journal_of_a_newer_version_is_neither_read_nor_written(
    tmp_path: Path, written_by_then: str
) -> None:
    journal = Journal(tmp_path)
    journal.write_whole(RUNS, MODEL, "run-1", records=[a_run()])
    (tmp_path / "format").write_text(f"{written_by_then}\n")
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}

    attempts: list[Callable[[Journal], object]] = [
        *WAYS_TO_WRITE.values(),
        lambda old: old.compact(PREDICTIONS, MODEL, "run-1"),
        lambda old: list(old.read(RUNS)),
        lambda old: old.snapshot(),
    ]
    for attempt in attempts:
        with pytest.raises(JournalError, match="Nothing was changed"):
            attempt(journal)

    after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("stranger", [a_run().model_dump_json(), "{}", "[]", "null", '"text"'])
def test_a_line_of_another_kind_is_named_by_file_and_number(tmp_path: Path, stranger: str) -> None:
    journal = Journal(tmp_path)
    journal.write_whole(PREDICTIONS, MODEL, "run-1", records=[a_prediction()])
    path = journal.files(PREDICTIONS)[0]
    path.write_text(path.read_text() + stranger + "\n")

    with pytest.raises(JournalError) as raised:
        list(journal.read(PREDICTIONS))

    assert str(raised.value).startswith(f"{path}, line 2 is no Prediction: ")


@pytest.mark.parametrize("moment", ["while writing", "before the swap"])
def test_a_file_that_is_written_whole_is_there_as_a_whole_or_not_at_all(
    tmp_path: Path, moment: str
) -> None:
    fresh, replaced = Journal(tmp_path / "fresh"), Journal(tmp_path / "replaced")
    replaced.write_whole(RUNS, MODEL, "run-1", records=[a_run()])

    for journal in (fresh, replaced):
        command = [sys.executable, "-c", KILLED_WRITER, str(journal.root), moment]
        assert subprocess.run(command, check=False).returncode == -signal.SIGKILL

    assert not fresh.exists(RUNS, MODEL, "run-1")
    assert list(fresh.read(RUNS)) == []
    assert list(replaced.read(RUNS)) == [a_run()]


@pytest.mark.parametrize(
    "model", ["a/b", "a/b:free", "a/b.c-1", "a/b/c", "a/~b", "a/b@2", "a/%2F", "..", ".", "a/ü"]
)
def test_any_model_id_becomes_one_safe_folder_and_comes_back(tmp_path: Path, model: str) -> None:
    journal = Journal(tmp_path / "journal")

    journal.write_whole(RUNS, model, "run-1", records=[a_run()])

    assert journal.parts(RUNS) == [model]
    assert list(journal.read(RUNS, model)) == [a_run()]
    (folder,) = (tmp_path / "journal" / "runs").iterdir()
    assert not set(folder.name) & set("/\\")


def test_a_killed_holder_frees_its_model_and_never_blocked_another(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, said = Journal(tmp_path), Queue[LogRecord]()
    caplog.set_level(INFO, "eval_pipeline")
    monkeypatch.setattr(getLogger("eval_pipeline"), "handlers", [QueueHandler(said)])

    async def outlive(holder: subprocess.Popen[str]) -> str:
        claim = asyncio.create_task(_claim(journal))
        async with asyncio.timeout(60), journal.claim(PREDICTIONS, "demo/weak"):
            waiting = await asyncio.to_thread(said.get, timeout=30)
            assert not claim.done()
            holder.kill()
            await claim
        return waiting.getMessage()

    with a_process(HOLDER, tmp_path, MODEL) as holder:
        message = asyncio.run(outlive(holder))

    assert message.startswith(f"Waiting for the predictions of {MODEL}: process {holder.pid} ")


def test_no_two_processes_hold_the_same_model_at_once(tmp_path: Path) -> None:
    with ExitStack() as stack:
        three = (a_process(CONTENDER, tmp_path, MODEL) for _ in range(3))
        contenders = [stack.enter_context(one) for one in three]

        for contender in contenders:
            assert contender.stdin
            contender.stdin.close()

        assert [contender.wait(60) for contender in contenders] == [0, 0, 0]
