"""Sections of a report between comments of ours: what people changed or removed is left alone."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eval_pipeline.analysis.report.comments import FailureNote, Head
from eval_pipeline.analysis.report.lines import BOM, content, lines_of, outside_of_code
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.untrusted import printable

_NAME = r"[a-z]+(?:-[0-9a-z]+)?"
_MARKER = re.compile(
    rf"<!-- evals:(?:(begin) ({_NAME}) ([0-9a-f]{{16}})|(end) ({_NAME})) -->[ \t]*"
)
_LIKE_A_MARKER = re.compile(r"<!--\s*evals:(?:begin|end)\b")
_MARK = re.compile(r"<!--(?=\s*evals)", re.IGNORECASE)


class DamagedError(Exception):
    """Which marker is missing or damaged."""


class Section(NamedTuple):
    """A part of the report that is ours: its name and its text."""

    name: str
    text: str

    @property
    def is_one_of_many(self) -> bool:
        """Whether it comes and goes with what it is about."""
        return _is_one_of_many(self.name)


class Part(NamedTuple):
    """A stretch of a file: a section with its two markers, or what stands between (no name)."""

    lines: Sequence[str]
    name: str = ""
    written: str = ""
    """The hash of the section's text as we wrote it."""

    @property
    def is_edited(self) -> bool:
        """Whether somebody has changed the section."""
        return bool(self.name) and _hash("".join(self.lines[1:-1])) != self.written

    @property
    def about(self) -> str:
        """What people know the section by: its name, or the item that failed."""
        if not _is_one_of_many(self.name):
            return self.name
        notes = (FailureNote.read(content(line)) for line in self.lines)
        return next((note.item for note in notes if note is not None), self.name)

    @property
    def is_one_of_many(self) -> bool:
        """Whether the section comes and goes with what it is about."""
        return _is_one_of_many(self.name)

    @property
    def end_of_line(self) -> str:
        """How the lines of a section end."""
        return self.lines[0][len(content(self.lines[0])) :]

    def renewed(self, section: Section) -> str:
        """The section with another text."""
        if _hash(section.text) == self.written:
            return "".join(self.lines)  # as it is, whatever an editor made of its blanks
        renewed = marked(section)
        if self.lines[-1] == content(self.lines[-1]):
            renewed = content(renewed)  # the file ends here, without an end of line
        return renewed.replace("\n", self.end_of_line)


class _Marker(NamedTuple):
    line: int
    name: str
    written: str | None

    def __str__(self) -> str:
        return f"<!-- evals:{'end' if self.written is None else 'begin'} {self.name} … -->"


def marked(section: Section) -> str:
    """A section between its markers."""
    text = section.text.strip("\n")
    begin = f"<!-- evals:begin {section.name} {_hash(text)} -->"
    return f"{begin}\n\n{text}\n\n<!-- evals:end {section.name} -->\n"


def unmarked(text: str) -> str:
    """A text of somebody else's in which nothing looks like a comment of ours."""
    return _MARK.sub(r"<\\!--", text)


def parts_of(text: str) -> list[Part]:
    """The whole file in parts; if a marker is missing or damaged, nothing is safe to replace."""
    lines = lines_of(text)
    parts, done = [], 0
    markers = _markers(lines)
    for begin in markers:
        end = next(markers, None)
        if begin.written is None:
            raise DamagedError(_missing(begin, "has no beginning"))
        if end is None or end.written is not None or end.name != begin.name:
            raise DamagedError(_missing(begin, f"has no <!-- evals:end {begin.name} -->"))
        parts.append(Part(lines[done : begin.line]))
        done = end.line + 1
        parts.append(Part(lines[begin.line : done], begin.name, begin.written))
    return [*parts, Part(lines[done:])]


def edited(parts: Sequence[Part]) -> tuple[str, ...]:
    """What the sections are about that somebody has changed."""
    return tuple(dict.fromkeys(part.about for part in parts if part.is_edited))


def with_head(text: str, head: Head) -> str:
    """The file with another head."""
    lines = lines_of(text)
    for number, line in outside_of_code(lines):
        mark = line.removeprefix(BOM)
        if Head.read(mark) is not None:
            lines[number] = lines[number].replace(mark, head.line())
            break
    return "".join(lines)


def _is_one_of_many(name: str) -> bool:
    return "-" in name


def _markers(lines: Sequence[str]) -> Iterator[_Marker]:
    for number, line in outside_of_code(lines):
        found = _MARKER.fullmatch(line.removeprefix(BOM))
        if found is not None:
            yield _Marker(number, found[2] or found[5], found[3])
        elif _LIKE_A_MARKER.match(line):
            raise DamagedError(f"line {number + 1} is a damaged marker: {printable(line[:80])}")


def _missing(marker: _Marker, what: str) -> str:
    return f"the marker {marker} in line {marker.line + 1} {what}"


def _hash(text: str) -> str:
    """The same whatever an editor does to ends of lines and to blanks before them."""
    lines = (content(line).rstrip() for line in lines_of(text))
    return fingerprint("\n".join(lines).strip("\n"))
