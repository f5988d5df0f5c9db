"""What programs that share a file of counts may rely on."""

import fcntl
import json
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tally import add, read

PATIENCE = 3.0
MOMENT = 0.03


@contextmanager
def lock_held(path: Path) -> Iterator[None]:
    """The lock, as another program holds it."""
    with open(f"{path}.lock", "ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def is_locked(path: Path) -> bool:
    with open(f"{path}.lock", "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def in_thread(call: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread


def add_many(path: Path, times: int) -> None:
    for _ in range(times):
        add(path, {"hits": 1, "bytes": 10})


def test_amounts_add_up(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    assert read(path) == {}
    assert add(path, {"a": 2, "b": 5}) == {"a": 2, "b": 5}
    assert add(path, {"b": -5, "é": 10**20}) == {"a": 2, "b": 0, "é": 10**20}
    assert read(path) == {"a": 2, "b": 0, "é": 10**20}
    assert json.loads(path.read_text(encoding="utf-8")) == read(path)


def test_counts_of_other_programs_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    path.write_text('{"theirs": 7}\n', encoding="utf-8")
    amounts = {"ours": 1}
    assert add(path, amounts) == {"theirs": 7, "ours": 1}
    assert amounts == {"ours": 1}


def test_it_waits_for_the_lock_and_then_sees_what_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    add(path, {"hits": 1})
    results: list[dict[str, int]] = []
    with lock_held(path):
        thread = in_thread(lambda: results.append(add(path, {"hits": 1})))
        thread.join(MOMENT)
        assert thread.is_alive()
        other = tmp_path / "theirs"
        other.write_text('{"hits": 100}', encoding="utf-8")
        other.replace(path)
    thread.join(PATIENCE)
    assert results == [{"hits": 101}]
    assert read(path) == {"hits": 101}


def test_reading_does_not_wait_for_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    add(path, {"hits": 1})
    results: list[dict[str, int]] = []
    with lock_held(path):
        thread = in_thread(lambda: results.append(read(path)))
        thread.join(PATIENCE)
        assert results == [{"hits": 1}]


def test_an_open_file_keeps_its_old_content(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    add(path, {"a": 1})
    with path.open(encoding="utf-8") as reader:
        add(path, {"a": 1, "b": 1})
        assert json.load(reader) == {"a": 1}
    assert read(path) == {"a": 2, "b": 1}


def test_the_lock_file_stays_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    add(path, {"a": 1})
    before = os.stat(tmp_path / "tally.json.lock")
    add(path, {"a": 1})
    after = os.stat(tmp_path / "tally.json.lock")
    assert (before.st_dev, before.st_ino) == (after.st_dev, after.st_ino)


@pytest.mark.parametrize("amounts", [{"a": -3}, {"b": 1, "a": -3}, {"a": -3, "b": 1}, {"c": -1}])
def test_a_negative_count_is_refused_as_a_whole(tmp_path: Path, amounts: dict[str, int]) -> None:
    path = tmp_path / "tally.json"
    add(path, {"a": 2})
    with pytest.raises(ValueError):
        add(path, amounts)
    assert read(path) == {"a": 2}
    assert not is_locked(path)


def test_nothing_is_left_over(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    add(path, {"a": 1})
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        add(path, {"a": 1})
        with pytest.raises(ValueError):
            add(path, {"a": -100})
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert sorted(os.listdir(tmp_path)) == ["tally.json", "tally.json.lock"]
    assert not is_locked(path)


def test_threads_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    threads = [in_thread(lambda: add_many(path, 25)) for _ in range(4)]
    for thread in threads:
        thread.join(PATIENCE)
    assert read(path) == {"hits": 100, "bytes": 1000}


def test_processes_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tally.json"
    forked = multiprocessing.get_context("fork")
    processes = [forked.Process(target=add_many, args=(path, 25), daemon=True) for _ in range(4)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE)
    assert [process.exitcode for process in processes] == [0] * 4
    assert read(path) == {"hits": 100, "bytes": 1000}
