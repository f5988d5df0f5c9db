"""What people say of replies: a CSV file -> labels, all of them or none, kept in the journal."""

import csv
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import StringIO
from pathlib import Path

from eval_pipeline.errors import NAMED_PROBLEMS, DatasetError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import LABELS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.prediction import Label
from eval_pipeline.settings.settings import Settings
from eval_pipeline.text import quoted

SETTING = "reliability.labels"
REQUIRED = ("item_id", "correct")
OPTIONAL = ("suite", "model", "run_id", "sample", "labeller")
WORDS: Mapping[str, bool] = {
    **dict.fromkeys(("true", "yes", "1", "right"), True),
    **dict.fromkeys(("false", "no", "0", "wrong"), False),
}
MOST_BYTES = 16 * 1024 * 1024
MOST_LABELS = 200_000
MOST_CHARACTERS = 200
MOST_SAMPLES = 1_000_000

log = logging.getLogger(__name__)


def load_labels(settings: Settings, journal: Journal) -> list[str]:
    """Journal the labels that the settings name, if they have changed; return warnings."""
    if settings.reliability.labels is None:
        return []
    path = settings.path(settings.reliability.labels)
    labels, warnings = read_labels(path, settings.reliability.labels)
    for warning in warnings:
        log.warning(warning)
    _keep(labels, journal)
    return warnings


def read_labels(path: Path, shown: Path) -> tuple[list[Label], list[str]]:
    """Return the labels of the file and warnings; raise if a label is wrong, saying where and why.

    How many are wrong is counted to the end.
    """
    rows = _rows(_text(path, shown), shown)
    header = [name.strip().casefold() for name in next(rows, (1, []))[1]]
    warnings = _check_header(header, shown)
    labels: list[Label] = []
    problems: list[str] = []
    lines: dict[str, int] = {}
    for line, cells in rows:
        try:
            label = _label(line, header, cells)
            if len(labels) == MOST_LABELS:
                raise ValueError(f": there may be {MOST_LABELS} labels at most")
            first = lines.setdefault(label.model_dump_json(exclude={"line", "correct"}), line)
            if first != line:
                raise ValueError(f": the same labeller has a label for that reply in line {first}")
            labels.append(label)
        except ValueError as error:
            problems.append(f"line {line}{error}")
    if problems:
        told, more = problems[:NAMED_PROBLEMS], len(problems) - NAMED_PROBLEMS
        told += [f"and {more} more wrong lines"] if more > 0 else []
        raise DatasetError("\n".join(f"{shown}, {one}." for one in told))
    return labels, warnings


def _keep(labels: Sequence[Label], journal: Journal) -> None:
    """The file that was loaded last stands, so the same one is not written twice in a row."""
    version = fingerprint(*(label.model_dump() for label in labels))
    files = journal.files(LABELS)
    if not files or not files[-1].stem.endswith(f"-{version}"):
        journal.write_whole(LABELS, f"{now():%Y%m%dT%H%M%S.%f}-{version}", records=labels)


def _text(path: Path, shown: Path) -> str:
    try:
        if not path.is_file():
            raise DatasetError(f"{shown}: there is no such file; correct {SETTING}.")
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise DatasetError(f"{shown}: the file cannot be read ({reason}).") from None
    if len(content) > MOST_BYTES:
        raise DatasetError(f"{shown}: labels may have {MOST_BYTES // 1024**2} MB at most.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DatasetError(f"{shown}, line {line}: it is not UTF-8; save it as UTF-8.") from None


def _rows(text: str, shown: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield each row that is not blank, and the line that it begins on."""
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        raise DatasetError(f"{shown}, line {line}: it is not CSV ({error}).") from None


def _check_header(header: Sequence[str], shown: Path) -> list[str]:
    """What is not used is told: a column with a slip in its name would go unnoticed otherwise."""
    known = (*REQUIRED, *OPTIONAL)
    if missing := [name for name in REQUIRED if name not in header]:
        raise DatasetError(
            f"{shown}, line 1: there is no column {' and no column '.join(missing)}. The first "
            f"line names the columns, separated by commas: {', '.join(REQUIRED)}, and if wanted "
            f"{', '.join(OPTIONAL)}."
        )
    if twice := [name for name in known if header.count(name) > 1]:
        raise DatasetError(f"{shown}, line 1: the column {twice[0]} is there more than once.")
    unused = ", ".join([quoted(name) for name in header if name not in known][:NAMED_PROBLEMS])
    return [f"{shown}: columns that are not used: {unused}."] if unused else []


def _label(line: int, header: Sequence[str], cells: Sequence[str]) -> Label:
    if len(cells) != len(header):
        raise ValueError(f": it has {len(cells)} cells where the header has {len(header)}")
    given = dict(zip(header, cells, strict=True))
    values: dict[str, str | int | bool | None] = {}
    for name, read in _COLUMNS.items():
        try:
            values[name] = read(given.get(name, "").strip())
        except ValueError as error:
            raise ValueError(f", column {name}: {error}") from None
    return Label.model_validate({"line": line, **values})


def _correct(text: str) -> bool:
    try:
        return WORDS[text.casefold()]
    except KeyError:
        raise ValueError(f"must be one of {', '.join(WORDS)}; got {quoted(text)}") from None


def _required(text: str) -> str | None:
    if not text:
        raise ValueError("must not be empty")
    return _optional(text)


def _optional(text: str) -> str | None:
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"must have {MOST_CHARACTERS} characters at most, has {len(text)}")
    if not text.isprintable():
        raise ValueError(f"must be one line of printable characters; got {quoted(text)}")
    return text or None


def _sample(text: str) -> int | None:
    if not text:
        return None
    # Not every digit that Unicode knows makes a number.
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MOST_SAMPLES))):
        raise ValueError(f"must be a whole number from 0; got {quoted(text)}")
    return int(text)


_COLUMNS: Mapping[str, Callable[[str], str | int | bool | None]] = {
    "item_id": _required,
    "correct": _correct,
    "suite": _optional,
    "model": _optional,
    "run_id": _optional,
    "sample": _sample,
    "labeller": _optional,
}
