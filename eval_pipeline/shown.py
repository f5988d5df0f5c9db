"""What of the journal the DuckDB file shows, file by file: so that nobody builds it in vain.

Many who finish at the same time wait for each other to publish. Whoever was waited for has mostly
published what the others have, too.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.journal import STREAMS, Journal, Stream
from eval_pipeline.journal.files import swap_in

Shown = Mapping[str, Sequence[str]]
"""By stream, its files as `Journal.snapshot` tells of them."""


def shown_of(journal: Journal, parts: Sequence[Stream[Any]] = ()) -> dict[str, list[str]]:
    """What there is to show now, in these parts of the journal or in all."""
    return {one.name: journal.snapshot(one) for one in parts or STREAMS}


def note_shown(database: Path, shown: Shown) -> None:
    """Keeps beside the file what it was built from."""
    swap_in(_beside(database), json.dumps(dict(shown)).encode())


def read_shown(database: Path) -> Shown:
    """What was noted last; nothing if nobody can tell."""
    try:
        found = json.loads(_beside(database).read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def covers(shown: Shown, known: Mapping[str, str], wanted: Shown) -> bool:
    """Whether all that is wanted is shown, by a file that knows its parts by their fingerprints.

    A file of the journal only grows, so the same file with more in it will do.
    """
    return all(
        known.get(part) == fingerprint(*shown.get(part, ())) and _holds(shown.get(part, ()), lines)
        for part, lines in wanted.items()
    )


def _holds(shown: Iterable[str], wanted: Iterable[str]) -> bool:
    sizes = dict(map(_name_and_rest, shown))
    for name, rest in map(_name_and_rest, wanted):
        there = sizes.get(name)
        if there != rest and not _is_larger(there, rest):
            return False
    return True


def _name_and_rest(line: str) -> tuple[str, str]:
    """Names of files have no blanks: what is odd in them is quoted."""
    name, _, rest = line.partition(" ")
    return name, rest


def _is_larger(there: str | None, wanted: str) -> bool:
    """Of two sizes; where there is more to tell than a size, nobody knows."""
    if there is None or not (there.isdecimal() and wanted.isdecimal()):
        return False
    return int(there) > int(wanted)


def _beside(database: Path) -> Path:
    return database.with_name(f".{database.stem}.shown")
