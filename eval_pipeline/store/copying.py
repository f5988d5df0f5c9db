"""A journal folder as the working copy of a store: what is new comes in from there and goes up.

Both may be repeated and interrupted, and several processes may do them at once: the bytes of an
object never change, and files come in whole. What a Parquet file stands for is neither fetched nor
sent, by whichever machine it was compacted.
"""

import logging
import os
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, TypeVar

from filelock import Timeout

from eval_pipeline.journal.disk import JournalError, explained, swap_in, sync
from eval_pipeline.journal.folder import (
    DIAGNOSES,
    JUDGED,
    PREDICTIONS,
    STREAMS,
    Journal,
    Stream,
    file_name,
)
from eval_pipeline.journal.folder import FORMAT as JOURNAL_FORMAT
from eval_pipeline.journal.lines import PARQUET, Source, grows, is_replaced, replaced_by
from eval_pipeline.store import names
from eval_pipeline.store.objects import AT_ONCE, MissingError, Objects, TakenError
from eval_pipeline.store.tails import cut_off

TRIES = 3
SAME_S = 2
"""Some disks keep the time of a file only so exactly."""
BY_MODEL = frozenset(
    ("attempts", "runs", "predictions", "judged", "rejudged", "diagnoses", "reclassified")
)

log = logging.getLogger(__name__)
T = TypeVar("T")
AT_A_TIME = 16


class WorkingCopy:
    """A journal's folder and its store; `known` is what the store has, as far as seen from here."""

    def __init__(self, journal: Journal, objects: Objects) -> None:
        self.objects = objects
        self.known: dict[Path, names.Remote] = {}
        self.buried: set[tuple[str, str]] = set()
        self._root = journal.root
        self._read_only = journal.read_only
        # The folder by itself: to fetch into it is no writing, even where nobody may write.
        self._folder = Journal(journal.root)
        self._replaced: dict[Source, list[Source]] = {}

    def fetch(self) -> None:
        """Everything that is in the store and not here; what was deleted there goes here too."""
        for attempt in range(TRIES):
            try:
                return self._fetch()
            except MissingError:  # it was compacted meanwhile, and stands in another object
                if attempt == TRIES - 1:
                    raise
        return None

    def upload(self, models: Collection[str] | None = None) -> None:
        """Everything that is here and not in the store, or what is of these models."""
        if self._read_only:
            return
        paths = [
            path.relative_to(self._root)
            for stream in STREAMS
            for parts in _narrowed(stream, models)
            for path in self._folder.files(stream, *parts)
        ]
        _all_at_once(self._send, paths)

    def mend(self, is_ours: Callable[[Stream[Any], str], bool]) -> None:
        """Of files that others compacted before the end was sent, the end alone is kept."""
        for stream in (PREDICTIONS, JUDGED, DIAGNOSES):  # which are claimed model by model
            for path in self._folder.files(stream):
                if grows(path.name) and (stands := self._stands_for(path)):
                    model = self._folder.part_of(path)
                    with _alone(self._folder, stream, model, ours=is_ours(stream, model)) as alone:
                        sizes = [one.size for one in stands if one.name == path.name]
                        if alone and sizes:
                            cut_off(path, max(sizes))

    def sweep(self, models: Collection[str] | None = None) -> None:
        """Deletes objects whose lines stand in a Parquet file that is in the store."""
        for beside in self._by_folder(models).values():
            compacted = [path for path in beside if path.suffix == PARQUET]
            if compacted and len(beside) > 1 and not self._read_only:
                replaced = {one for path in compacted for one in self._within(path)}
                for path in beside:
                    remote = self.known[path]
                    if is_replaced(Source(path.name, remote.size), replaced):
                        self.objects.delete(one.name for one in remote.pieces)
                        del self.known[path]

    def _by_folder(self, models: Collection[str] | None = None) -> dict[Path, list[Path]]:
        """What the store has, folder by folder; Parquet files first, and newer ones before older.

        So what stands in one of them is known before it would be fetched.
        """
        folders: dict[Path, list[Path]] = {}
        wanted = None if models is None else {file_name(model) for model in models}
        for path in sorted(self.known, key=lambda one: (one.suffix, one.name), reverse=True):
            if wanted is None or names.run_of(path)[0] in wanted:
                folders.setdefault(path.parent, []).append(path)
        return folders

    def bury(self, model: str, run_id: str) -> None:
        """From here on the run is deleted, for every copy there is."""
        name = names.buried_name(model, run_id)
        self.objects.put(name, b"")
        if run := names.buried_run(name):
            self.buried.add(run)
        self._delete_buried()

    def _fetch(self) -> None:
        self._check_format()
        self.buried = {
            run for one in self.objects.find(names.BURIED) if (run := names.buried_run(one.name))
        }
        self.known, strange = names.remote_files(self.objects.find(names.FILES))
        if strange:
            log.warning("%s has %d objects that are not ours.", self.objects.url, strange)
        for run in self.buried:
            self._folder.drop_run(*run)
        self._delete_buried()
        _all_at_once(self._take_all, list(self._by_folder().values()))

    def _take_all(self, paths: Sequence[Path]) -> None:
        for path in paths:
            remote = self.known[path]
            with explained(self._root / path):
                (self._take_end if remote.grows else self._take_whole)(path, remote)

    def _check_format(self) -> None:
        """A store that a newer version has written to is refused before anything is done."""
        try:
            text = self.objects.get(names.FORMAT).decode("ascii", "replace").strip()
        except MissingError:
            text = ""
        if text and (not text.isdecimal() or int(text) > JOURNAL_FORMAT):
            raise JournalError(
                f"{self.objects.url} has journal format {text[:20]!r}, this version reads up to "
                f"{JOURNAL_FORMAT}: update eval_pipeline. Nothing was changed."
            )
        if not self._read_only and (not text or int(text) < JOURNAL_FORMAT):
            self.objects.put(names.FORMAT, f"{JOURNAL_FORMAT}\n".encode())
        if text and not self._folder.written_format():
            swap_in(self._root / "format", f"{text}\n".encode())

    def _delete_buried(self) -> None:
        """Deletes what the store has left of deleted runs, if this process may."""
        for path in [path for path in self.known if self._is_buried(path)]:
            remote = self.known.pop(path)
            if not self._read_only:
                self.objects.delete(one.name for one in remote.pieces)

    def _is_buried(self, path: Path) -> bool:
        return path.parts[0] in BY_MODEL and names.run_of(path) in self.buried

    def _take_end(self, path: Path, remote: names.Remote) -> None:
        """What a file has got since it was fetched."""
        target, reach = self._root / path, remote.size
        here = target.stat().st_size if target.exists() else 0
        if here >= reach or is_replaced(Source(path.name, reach), self._stands_for(target)):
            return
        with suppress(FileNotFoundError):
            content = bytearray(target.read_bytes() if here and remote.ends_at(here) else b"")
            for piece in remote.from_byte(len(content)):
                data = b"".join(self.objects.pieces(piece.name, piece.last - piece.first))
                content += data[len(content) - piece.first :]
            _swap_in(target, iter([bytes(content)]))

    def _take_whole(self, path: Path, remote: names.Remote) -> None:
        target, latest = self._root / path, remote.latest
        if self._is_here(target, latest):
            return
        if not is_replaced(Source(path.name, latest.last), self._stands_for(target)):
            pieces = self.objects.pieces(latest.name, latest.last)
            _swap_in(target, pieces, time_us=latest.first)

    @staticmethod
    def _is_here(target: Path, latest: names.Piece) -> bool:
        """The same file, or one that was written later and has yet to be sent."""
        try:
            about = target.stat()
        except FileNotFoundError:
            return False
        behind_us = latest.first - about.st_mtime_ns // 1000
        return behind_us <= (SAME_S * 1_000_000 if about.st_size == latest.last else 0)

    def _stands_for(self, path: Path) -> list[Source]:
        """What the Parquet files beside this one stand for."""
        beside = path.parent.glob(f"[!.]*{PARQUET}")
        return [one for other in beside if other != path for one in self._within(other)]

    def _within(self, path: Path) -> list[Source]:
        path = self._root / path
        key = Source(str(path), path.stat().st_size if path.exists() else 0)
        if key not in self._replaced:
            self._replaced[key] = replaced_by(path) if key.size else []
        return self._replaced[key]

    def _send(self, path: Path) -> None:
        if self._is_buried(path):
            return
        with explained(self._root / path), suppress(FileNotFoundError, TakenError):
            if grows(path.name):
                self._send_end(path)
            else:
                self._send_whole(path)

    def _send_end(self, path: Path) -> None:
        """Whole lines only: what a crash has torn stays here."""
        remote = self.known.setdefault(path, names.Remote(grows=True))
        start = remote.size
        with (self._root / path).open("rb") as file:
            if os.fstat(file.fileno()).st_size == start:
                return
            file.seek(start)
            while data := _whole_lines(file.read(AT_ONCE) + file.readline()):
                name = names.segment_name(path, start, end := start + len(data))
                self.objects.put(name, data)
                remote.pieces.append(names.Piece(name, start, end))
                start = end

    def _send_whole(self, path: Path) -> None:
        about = (self._root / path).stat()
        time_us = about.st_mtime_ns // 1000
        remote = self.known.setdefault(path, names.Remote(grows=False))
        if remote.pieces and self._is_there(remote.latest, time_us, about.st_size):
            return
        name = names.whole_name(path, time_us, about.st_size)
        source = self._root / path
        self.objects.put(name, source if about.st_size > AT_ONCE else source.read_bytes())
        remote.pieces.append(names.Piece(name, time_us, about.st_size))

    @staticmethod
    def _is_there(latest: names.Piece, time_us: int, size: int) -> bool:
        return time_us - latest.first <= (SAME_S * 1_000_000 if size == latest.last else 0)


def _all_at_once(do: Callable[[T], None], things: Sequence[T]) -> None:
    """Does it for each, several at a time: most of it is waiting. The first trouble is raised."""
    with ThreadPoolExecutor(AT_A_TIME, "store") as pool:
        for _ in pool.map(do, things):
            pass


def _narrowed(stream: Stream[Any], models: Collection[str] | None) -> list[tuple[str, ...]]:
    if models is None:
        return [()]
    return [(model,) for model in models] if stream.name in BY_MODEL else []


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


@contextmanager
def _alone(journal: Journal, stream: Stream[Any], model: str, *, ours: bool) -> Iterator[bool]:
    """Whether nobody else on this machine is at work on it."""
    if ours:
        yield True
        return
    lock = journal.lock(stream, model)
    try:
        lock.acquire(timeout=0)
    except (Timeout, OSError):
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


def _swap_in(target: Path, pieces: Iterator[bytes], time_us: int | None = None) -> None:
    """Puts a file in place that is on disk as a whole, with the time it was written elsewhere."""
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_name(f".{target.name}.{token_hex(8)}")
    try:
        with unfinished.open("wb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        if time_us is not None:
            os.utime(unfinished, ns=(time_us * 1000, time_us * 1000))
        unfinished.replace(target)
        sync(target.parent)
    finally:
        unfinished.unlink(missing_ok=True)
