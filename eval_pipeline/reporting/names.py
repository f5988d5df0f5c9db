"""Names of models where there is little room: without their middle, and no two alike."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from os.path import commonprefix

from rich.cells import cell_len

CUT = "…"


def shortened(name: str, width: int, end: int | None = None) -> str:
    """A name without its middle: both the vendor and the last words tell it from others.

    Of its end so much is kept, by default as much as of its beginning.
    """
    if cell_len(name) <= width:
        return name
    end = max(0, width - 1) // 2 if end is None else end
    return beginning(name, width - 1 - end) + CUT + beginning(name[::-1], end)[::-1]


def told_apart(names: Iterable[str], width: int) -> dict[str, str]:
    """Each of the names as it fits; those that would look alike are cut where they do not."""
    short = {name: shortened(name, width) for name in names}
    for alike in _alike(short):
        short |= _otherwise_cut(alike, width)
    taken: set[str] = set()
    for name in sorted(short, key=lambda name: short[name] != name):  # those that are whole first
        if short[name] in taken:
            short[name] = _numbered(name, width, taken)
        taken.add(short[name])
    return short


def beginning(text: str, width: int) -> str:
    """As much of it as fits, which is counted in the terminal's cells."""
    room = width
    for place, one in enumerate(text):
        room -= cell_len(one)
        if room < 0:
            return text[:place]
    return text


def _alike(short: Mapping[str, str]) -> list[list[str]]:
    by_text: defaultdict[str, list[str]] = defaultdict(list)
    for name, text in short.items():
        by_text[text].append(name)
    return [names for names in by_text.values() if len(names) > 1]


def _otherwise_cut(alike: Sequence[str], width: int) -> dict[str, str]:
    """With one cut, as near to the middle as it can be, or else with what is around it."""
    for end in sorted(range(width), key=lambda end: abs(2 * end - width + 1)):
        short = {name: shortened(name, width, end) for name in alike}
        if len(set(short.values())) == len(short):
            return short
    room = width - 2 * len(CUT)
    first = max(0, len(commonprefix(alike)) - room // 2)  # noqa: RUF071  (no paths)
    return {name: CUT + beginning(name[first:], room) + CUT for name in alike}


def _numbered(name: str, width: int, taken: set[str]) -> str:
    marks = (f" ({number})" for number in count(2))
    texts = (shortened(name, width - len(mark)) + mark for mark in marks)
    return next(text for text in texts if text not in taken)
