"""A record that the writer took is on disk, or its maker is told; and nobody waits for long."""

import asyncio
import errno
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from eval_pipeline.journal import PREDICTIONS, Journal, JournalError, JournalWriter
from eval_pipeline.journal import writer as appending
from eval_pipeline.records.prediction import Prediction
from eval_pipeline_tests.builders import a_prediction

MODEL = "demo/strong"
NAMES = [f"q{n}" for n in range(300)]

READER = """
import sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal
print(*(prediction.item_id for prediction in Journal(Path(sys.argv[1])).read(PREDICTIONS)))
"""

# The file may grow to 20,000 bytes; the disk of this process is full then.
SMALL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
from eval_pipeline.journal import PREDICTIONS, Journal, JournalError
from eval_pipeline_tests.builders import a_prediction
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
landed = []
async def main():
    async with Journal(Path(sys.argv[1])).writer(PREDICTIONS, "demo/strong", "run-1") as writer:
        for n in range(100):
            record = a_prediction(f"q{n}", answer="x" * 500)
            await writer.post(lambda record=record: record, lambda _, n=n: landed.append(n))
            await asyncio.sleep(0.001)
try:
    asyncio.run(main())
except JournalError as error:
    print(len(landed), error)
"""


def read_elsewhere(root: Path) -> list[str]:
    command = [sys.executable, "-c", READER, str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


def items_in(path: Path) -> list[str]:
    lines = path.read_bytes().splitlines() if path.exists() else []
    return [Prediction.model_validate_json(line).item_id for line in lines]


def full(_: int, data: bytes = b"") -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


async def post(
    writer: JournalWriter[Prediction], record: Prediction, tell: Callable[[], None]
) -> None:
    await writer.post(lambda: record, lambda _: tell(), size=len(record.model_dump_json()))


async def _append(writer: JournalWriter[Prediction], record: Prediction) -> None:
    await writer.append(record)


async def _post(writer: JournalWriter[Prediction], record: Prediction) -> None:
    await post(writer, record, lambda: None)


WAYS = {"append": _append, "post": _post}


def test_many_appends_are_on_disk_when_they_return_and_share_their_fsyncs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, really_sync = [0], os.fsync

    def sync(descriptor: int) -> None:
        size = os.fstat(descriptor).st_size
        really_sync(descriptor)
        synced.append(size)

    async def land(writer: JournalWriter[Prediction], name: str) -> None:
        await writer.append(a_prediction(name))
        assert f'"item_id":"{name}"'.encode() in writer.path.read_bytes()[: max(synced)]

    async def land_all() -> list[str]:
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:
            await asyncio.gather(*(land(writer, name) for name in NAMES))
            return await asyncio.to_thread(read_elsewhere, tmp_path)

    monkeypatch.setattr(os, "fsync", sync)
    seen_elsewhere = asyncio.run(land_all())

    assert sorted(seen_elsewhere) == sorted(NAMES)
    assert len(synced) < 30


def test_a_file_written_as_a_whole_is_on_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, list[str]]] = []
    really_sync = os.fsync

    def sync(descriptor: int) -> None:
        really_sync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        named = [one.name for one in Journal(tmp_path).files(PREDICTIONS)]
        synced.append((path.name if path.is_dir() else path.read_text("utf-8"), named))

    monkeypatch.setattr(os, "fsync", sync)
    record = a_prediction("q1")
    Journal(tmp_path).write_whole(PREDICTIONS, MODEL, "run-1", "whole", records=[record])

    contents = [one for one in synced if record.model_dump_json() in one[0]]
    assert [named for _, named in contents] == [[]], "the content is synced while it has no name"
    folder, named = synced[-1]
    assert (folder, named) == ("run-1", ["whole.jsonl"]), "and then the name"


def test_posted_records_land_in_order_and_are_on_disk_when_it_is_told(tmp_path: Path) -> None:
    told: list[str] = []

    async def post_all() -> None:
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:

            def landed(name: str) -> None:
                assert f'"item_id":"{name}"'.encode() in writer.path.read_bytes()
                told.append(name)

            for name in NAMES:
                await post(writer, a_prediction(name), partial(landed, name))
                await asyncio.sleep(0)

    asyncio.run(post_all())

    assert told == NAMES
    assert read_elsewhere(tmp_path) == NAMES


@pytest.mark.parametrize("limit", ["MOST_LINES_WAITING", "MOST_BYTES_WAITING"])
def test_a_slow_disk_holds_up_those_who_post_too_much(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(appending, limit, 3 if limit == "MOST_LINES_WAITING" else 2000)
    may_write, really_write, told = threading.Event(), os.write, list[str]()

    def write(descriptor: int, data: bytes) -> int:
        may_write.wait()
        return really_write(descriptor, data)

    async def post_all(writer: JournalWriter[Prediction], posted: list[str]) -> None:
        for name in NAMES:
            posted.append(name)
            await post(writer, a_prediction(name), partial(told.append, name))
            await asyncio.sleep(0)

    async def hold_up() -> int:
        posted: list[str] = []
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:
            posting = asyncio.create_task(post_all(writer, posted))
            for _ in range(10 * len(NAMES)):
                await asyncio.sleep(0)
            held_up_at = len(posted)
            may_write.set()
            await posting
        return held_up_at

    monkeypatch.setattr(os, "write", write)
    held_up_at = asyncio.run(hold_up())

    assert 0 < held_up_at < 20
    assert told == read_elsewhere(tmp_path) == NAMES


def test_a_cancelled_task_leaves_nothing_behind_that_it_posted(tmp_path: Path) -> None:
    told: list[str] = []

    async def post_all() -> None:
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:
            for name in NAMES:
                await post(writer, a_prediction(name), partial(told.append, name))
            this = asyncio.current_task()
            assert this
            asyncio.get_running_loop().call_soon(this.cancel)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(post_all())

    assert told == read_elsewhere(tmp_path) == NAMES


def test_on_a_full_disk_every_caller_is_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    path.symlink_to("/dev/full")
    failures: list[BaseException | None] = []

    async def land_all() -> None:
        async with JournalWriter[Prediction](path) as writer:
            appends = (writer.append(a_prediction(f"q{n}")) for n in range(5))
            failures.extend(await asyncio.gather(*appends, return_exceptions=True))

    with pytest.raises(JournalError) as at_the_exit:
        asyncio.run(land_all())

    assert len(failures) == 5
    assert {str(failure) for failure in (*failures, at_the_exit.value)} == {
        f"{path}: The disk is full. Make room and materialize again; what is journalled is kept."
    }


def test_a_folder_that_is_taken_away_is_explained(tmp_path: Path) -> None:
    async def append() -> None:
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:
            writer.path.parent.rmdir()
            await writer.append(a_prediction())

    with pytest.raises(JournalError) as raised:
        asyncio.run(append())

    advice = "It cannot be written (No such file or directory). Fix that and materialize again."
    assert str(raised.value).endswith(advice)


def test_a_file_that_can_grow_no_further_keeps_all_that_was_told_to_have_landed(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", SMALL_DISK, str(tmp_path)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    landed, message = done.stdout.split(maxsplit=1)
    assert "It cannot be written (File too large)" in message
    assert 0 < int(landed) < 100
    (path,) = Journal(tmp_path).files(PREDICTIONS)
    assert items_in(path) == [f"q{n}" for n in range(int(landed))]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("failing", ["write", "fsync"])
def test_after_a_write_that_failed_nothing_lands_any_more_and_everybody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str, way: str
) -> None:
    journal, told, land = Journal(tmp_path), list[str](), WAYS[way]

    def half(descriptor: int, data: bytes = b"") -> int:
        os.pwrite(descriptor, data[: len(data) // 2], 0)
        return full(descriptor)

    async def land_three() -> None:
        async with journal.writer(PREDICTIONS, MODEL, "run-1") as writer:
            await writer.append(a_prediction("q1"))
            with monkeypatch.context() as disk:
                disk.setattr(os, failing, half)
                await post(writer, a_prediction("q2"), partial(told.append, "q2"))
                with pytest.raises(JournalError, match="disk is full"):
                    await writer.append(a_prediction("q3"))
            with pytest.raises(JournalError, match="disk is full"):
                await land(writer, a_prediction("q4"))

    with pytest.raises(JournalError, match="disk is full"):
        asyncio.run(land_three())

    assert told == []
    assert items_in(journal.files(PREDICTIONS)[0]) == ["q1"]


def test_what_goes_wrong_in_the_block_is_not_hidden_by_the_failed_write(tmp_path: Path) -> None:
    path = tmp_path / "full.jsonl"
    path.symlink_to("/dev/full")

    async def fail_twice() -> None:
        async with JournalWriter[Prediction](path) as writer:
            await post(writer, a_prediction(), lambda: None)
            raise ValueError("in the block")

    with pytest.raises(ValueError, match="in the block"):
        asyncio.run(fail_twice())


def test_a_listener_that_fails_is_heard_at_the_exit_and_the_others_are_told(tmp_path: Path) -> None:
    told: list[str] = []

    def fail() -> None:
        raise ValueError("a fault of ours")

    async def post_two() -> None:
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:
            await post(writer, a_prediction("q1"), fail)
            await post(writer, a_prediction("q2"), partial(told.append, "q2"))

    with pytest.raises(ValueError, match="a fault of ours"):
        asyncio.run(post_two())

    assert told == ["q2"]
    assert read_elsewhere(tmp_path) == ["q1", "q2"]


def test_a_record_that_can_not_be_made_costs_no_other_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[str | None] = []

    def fail() -> Prediction:
        raise ValueError("a fault of ours")

    def landed(record: Prediction | None) -> None:
        told.append(record.item_id if record else None)

    async def post_three() -> None:
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:
            for make in (lambda: a_prediction("q1"), fail, lambda: a_prediction("q3")):
                await writer.post(make, landed)

    asyncio.run(post_three())

    assert told == ["q1", None, "q3"]
    assert read_elsewhere(tmp_path) == ["q1", "q3"]
    assert "a fault of ours" in caplog.text


def test_a_closed_writer_takes_nothing(tmp_path: Path) -> None:
    async def append_too_late() -> None:
        async with Journal(tmp_path).writer(PREDICTIONS, MODEL, "run-1") as writer:
            pass
        await writer.append(a_prediction())

    with pytest.raises(JournalError, match="written to its end"):
        asyncio.run(append_too_late())
