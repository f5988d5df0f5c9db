"""What people say of replies: a CSV file -> labels, all of them or none, kept in the journal."""

import csv
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from eval_pipeline.errors import DatasetError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import LABELS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.prediction import Label
from eval_pipeline.settings.settings import Settings

SETTING = "reliability.labels"
REQUIRED = ("item_id", "correct")
OPTIONAL = ("suite", "model", "run_id", "sample", "labeller")
WORDS: Mapping[str, bool] = {
    "true": True,
    "yes": True,
    "1": True,
    "right": True,
    "false": False,
    "no": False,
    "0": False,
    "wrong": False,
}
MOST_BYTES = 16 * 1024 * 1024
MOST_LABELS = 200_000
MOST_CHARACTERS = 200
MOST_SAMPLES = 1_000_000

_SHOWN_PROBLEMS = 5
_SHOWN_CHARACTERS = 40

log = logging.getLogger(__name__)


class LabelsError(DatasetError):
    """A file of labels that can not be used: one sentence per problem, each on its own line."""


class Labels(NamedTuple):
    """The labels of a file, and what about it should be told."""

    labels: Sequence[Label]
    warnings: Sequence[str] = ()


def load_labels(settings: Settings, journal: Journal) -> list[str]:
    """Journals the labels that the settings name, if they are news; returns what is to be told."""
    if settings.reliability.labels is None:
        return []
    found = read_labels(settings.path(settings.reliability.labels), settings.reliability.labels)
    for warning in found.warnings:
        log.warning(warning)
    _keep(found.labels, journal)
    return list(found.warnings)


def read_labels(path: Path, shown: Path) -> Labels:
    """Every label of the file; if one of them is wrong, an error that says where and why."""
    rows = _rows(_text(path, shown), shown)
    header = [name.strip().casefold() for name in next(rows, _Cells(1, [])).cells]
    unused = _check_header(header, shown)
    reading = _Reading(header)
    for row in rows:
        reading.add(row)
    if reading.problems:
        raise LabelsError("\n".join(f"{shown}, {one}." for one in reading.told()))
    return Labels(reading.labels, unused)


def _keep(labels: Sequence[Label], journal: Journal) -> None:
    """The file that was loaded last stands, so the same one is not written twice in a row."""
    version = fingerprint(*(label.model_dump() for label in labels))
    files = journal.files(LABELS)
    if not files or not files[-1].stem.endswith(f"-{version}"):
        journal.write_whole(LABELS, f"{now():%Y%m%dT%H%M%S.%f}-{version}", records=labels)


def _text(path: Path, shown: Path) -> str:
    try:
        if not path.is_file():
            raise LabelsError(f"{shown}: there is no such file; correct {SETTING}.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise LabelsError(f"{shown}: the file can not be read ({reason}).") from None
    if len(content) > MOST_BYTES:
        raise LabelsError(f"{shown}: a file of labels may have {MOST_BYTES // 1024**2} MB at most.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise LabelsError(f"{shown}, line {line}: it is not UTF-8; save it as UTF-8.") from None


class _Cells(NamedTuple):
    """A row as it stands in the file, and the line that it begins on."""

    line: int
    cells: list[str]


def _rows(text: str, shown: Path) -> Iterator[_Cells]:
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield _Cells(line, cells)
            line = reader.line_num + 1
    except csv.Error as error:
        raise LabelsError(f"{shown}, line {line}: it is not CSV ({error}).") from None


def _check_header(header: Sequence[str], shown: Path) -> list[str]:
    """What is not used is told: a column with a slip in its name would go unnoticed otherwise."""
    known = (*REQUIRED, *OPTIONAL)
    if missing := [name for name in REQUIRED if name not in header]:
        raise LabelsError(
            f"{shown}, line 1: there is no column {' and no column '.join(missing)}. The first "
            f"line names the columns, separated by commas: {', '.join(REQUIRED)}, and if wanted "
            f"{', '.join(OPTIONAL)}."
        )
    if twice := [name for name in known if header.count(name) > 1]:
        raise LabelsError(f"{shown}, line 1: the column {twice[0]} is there more than once.")
    unused = [_quoted(name) for name in header if name not in known]
    if not unused:
        return []
    return [f"{shown}: columns that are not used: {', '.join(unused[:_SHOWN_PROBLEMS])}."]


@dataclass
class _Reading:
    """The labels so far, and what is wrong with the file."""

    header: Sequence[str]
    labels: list[Label] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    _lines: dict[tuple[object, ...], int] = field(default_factory=dict)

    def add(self, row: _Cells) -> None:
        """One row more; how many are wrong is counted to the end."""
        try:
            label = self._label(row)
        except ValueError as error:
            self.problems.append(f"line {row.line}{error}")
        else:
            self.labels.append(label)

    def told(self) -> list[str]:
        """The first problems, and how many more there are."""
        told, more = self.problems[:_SHOWN_PROBLEMS], len(self.problems) - _SHOWN_PROBLEMS
        return [*told, f"and {more} more wrong lines"] if more > 0 else told

    def _label(self, row: _Cells) -> Label:
        if len(row.cells) != len(self.header):
            cells = f"it has {len(row.cells)} cells where the header has {len(self.header)}"
            raise ValueError(f": {cells}")
        if len(self.labels) == MOST_LABELS:
            raise ValueError(f": there may be {MOST_LABELS} labels at most")
        given = dict(zip(self.header, row.cells, strict=True))
        values: dict[str, str | int | bool | None] = {}
        for name, read in _COLUMNS.items():
            try:
                values[name] = read(given.get(name, "").strip())
            except ValueError as error:
                raise ValueError(f", column {name}: {error}") from None
        self._refuse_second(row.line, values)
        return Label.model_validate({"line": row.line, **values})

    def _refuse_second(self, line: int, values: Mapping[str, object]) -> None:
        meant = tuple(value for name, value in values.items() if name != "correct")
        first = self._lines.setdefault(meant, line)
        if first != line:
            raise ValueError(f": the same labeller has a label for that reply in line {first}")


def _correct(text: str) -> bool:
    try:
        return WORDS[text.casefold()]
    except KeyError:
        raise ValueError(f"must be one of {', '.join(WORDS)}; got {_quoted(text)}") from None


def _required(text: str) -> str:
    if not text:
        raise ValueError("must not be empty")
    return _bounded(text)


def _optional(text: str) -> str | None:
    return _bounded(text) if text else None


def _bounded(text: str) -> str:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"must have {MOST_CHARACTERS} characters at most, has {len(text)}")
    if not text.isprintable():
        raise ValueError(f"must be one line of printable characters; got {_quoted(text)}")
    return text


def _sample(text: str) -> int | None:
    if not text:
        return None
    # Not every digit that Unicode knows makes a number.
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_SAMPLES))):
        raise ValueError(f"must be a whole number from 0; got {_quoted(text)}")
    return int(text)


def _quoted(text: str) -> str:
    cut = text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"
    return ascii(cut) if not cut.isprintable() else f"'{cut}'"


_COLUMNS: Mapping[str, Callable[[str], str | int | bool | None]] = {
    "item_id": _required,
    "correct": _correct,
    "suite": _optional,
    "model": _optional,
    "run_id": _optional,
    "sample": _sample,
    "labeller": _optional,
}
