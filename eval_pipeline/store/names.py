"""Names of objects and the journal files they are of; a name that is not ours leads nowhere.

A file that is appended to goes up in segments, `…/FILE/g-START-END`, a file that is written as a
whole as `…/FILE/w-TIME-SIZE`, where the latest one counts. No object is ever changed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple
from urllib.parse import unquote

from eval_pipeline.journal.folder import STREAMS, file_name
from eval_pipeline.journal.lines import JSONL, PARQUET, grows
from eval_pipeline.store.objects import Found

FILES, LEASES, BURIED, FORMAT = "journal", "leases", "gone", "format"
LEAST_PARTS, MOST_PARTS, LONGEST_PART = 2, 5, 255
_PIECE = re.compile(r"([gw])-(\d{1,20})-(\d{1,15})")
_STREAMS = {stream.name for stream in STREAMS}


class Piece(NamedTuple):
    """A segment of a file from `first` to `last`, or a whole one of time `first`, size `last`."""

    name: str
    first: int
    last: int


@dataclass
class Remote:
    """What the store has of one file."""

    grows: bool
    pieces: list[Piece] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many bytes can be had, from the first one on."""
        if not self.grows:
            return self.latest.last if self.pieces else 0
        return max((one.last for one in self.from_byte(0)), default=0)

    def from_byte(self, start: int) -> Iterator[Piece]:
        """The segments that follow on so many bytes; who uploads twice may have cut anew."""
        for one in sorted(self.pieces, key=lambda piece: piece.first):
            if one.first <= start < one.last:
                yield one
                start = one.last

    def ends_at(self, size: int) -> bool:
        """Whether a file of this size can be one that was fetched before."""
        return size == 0 or any(one.last == size for one in self.pieces)

    @property
    def latest(self) -> Piece:
        return max(self.pieces, key=lambda one: (one.first, one.name))


def remote_files(found: Iterable[Found]) -> tuple[dict[Path, Remote], int]:
    """The files whose objects these are, relative to the journal, and how many are none of ours."""
    files: dict[Path, Remote] = {}
    strange = 0
    for one in found:
        parts = PurePosixPath(one.name).parts
        piece = _PIECE.fullmatch(parts[-1]) if len(parts) > 1 else None
        path = journal_path(parts[1:-1])
        if piece is None or path is None or (piece[1] == "g") != grows(path.name):
            strange += 1
        elif _is_whole(first := int(piece[2]), last := int(piece[3]), one.size, piece[1]):
            remote = files.setdefault(path, Remote(grows(path.name)))
            remote.pieces.append(Piece(one.name, first, last))
        else:
            strange += 1
    return files, strange


def _is_whole(first: int, last: int, size: int, kind: str) -> bool:
    return size == (last - first if kind == "g" else last)


def journal_path(parts: tuple[str, ...]) -> Path | None:
    """The journal file of that name, or None: it is never anywhere else."""
    if not LEAST_PARTS <= len(parts) <= MOST_PARTS or parts[0] not in _STREAMS:
        return None
    if any(one.startswith(".") or _is_strange(one) for one in parts):
        return None
    path = Path(*parts)
    return path if path.suffix in (JSONL, PARQUET) else None


def _is_strange(part: str) -> bool:
    return len(part.encode()) > LONGEST_PART or not part or file_name(unquote(part)) != part


def segment_name(path: Path, start: int, end: int) -> str:
    """For the bytes of a file that is appended to."""
    return f"{FILES}/{path.as_posix()}/g-{start:012}-{end:012}"


def whole_name(path: Path, time_us: int, size: int) -> str:
    """For a file as it was at that time."""
    return f"{FILES}/{path.as_posix()}/w-{time_us:016}-{size}"


def buried_name(model: str, run_id: str) -> str:
    """Says for good that the run is deleted."""
    return f"{BURIED}/{file_name(model)}/{file_name(run_id)}"


def buried_run(name: str) -> tuple[str, str] | None:
    """The model's and the run's file names; None if it is no name of ours."""
    parts = PurePosixPath(name).parts
    if len(parts) != 3 or any(one.startswith(".") or _is_strange(one) for one in parts[1:]):  # noqa: PLR2004
        return None
    return parts[1], parts[2]


def run_of(path: Path) -> tuple[str, str]:
    """Model and run of a journal file, by their file names; of others something that is none."""
    parts = path.parts
    return parts[1], (parts[2] if len(parts) > 3 else path.stem) if len(parts) > 2 else ""  # noqa: PLR2004
