"""The lines of a Markdown file: as they are, and which of them stand outside of code blocks."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# What Markdown takes for the end of a line; Python's splitlines knows more of them.
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
# Lists and quotations may begin in the same line.
_OPENS = re.compile(r"((?:[ \t>]|[-*+][ \t]|\d{1,9}[.)][ \t])*+)(`{3,}(?=[^`]*$)|~{3,})")
_WIDEST_INDENT = 3
BOM = "\ufeff"
"""What some editors put before the first line."""


class _Fence(NamedTuple):
    """The beginning of a code block; one that is part of a list or quotation ends with that."""

    mark: str
    is_contained: bool

    def ends(self, line: str) -> bool:
        """Whether that line is its end."""
        mark = line.strip(" \t>" if self.is_contained else " \t")
        return (
            (self.is_contained or _indent(line) <= _WIDEST_INDENT)
            and set(mark) == {self.mark[0]}
            and len(mark) >= len(self.mark)
        )

    def is_left_by(self, line: str) -> bool:
        """Whether that line no longer belongs to what the block is part of."""
        return self.is_contained and bool(line) and line[0] not in " \t>"


def lines_of(text: str) -> list[str]:
    """The lines with their ends, which together are the text."""
    return _LINE.findall(text)


def content(line: str) -> str:
    """A line without its end."""
    return line.rstrip("\r\n")


def outside_of_code(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    """The number, from 0, and the content of each line that is not in a fenced code block."""
    fence: _Fence | None = None
    for number, line in enumerate(map(content, lines)):
        if fence is not None and fence.is_left_by(line):
            fence = None
        if fence is not None:
            fence = None if fence.ends(line) else fence
        elif (fence := _opened(line)) is None:
            yield number, line


def _opened(line: str) -> _Fence | None:
    found = _OPENS.match(line)
    if found is None:
        return None
    before, mark = found.groups()
    is_contained = bool(before.strip())
    # More of an indent is code of another kind, or belongs to a list: our lines never do.
    opens = is_contained or _indent(line) <= _WIDEST_INDENT
    return _Fence(mark, is_contained) if opens else None


def _indent(line: str) -> int:
    spaced = line.expandtabs(4)
    return len(spaced) - len(spaced.lstrip(" "))
