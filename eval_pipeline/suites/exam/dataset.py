"""Raw rows -> ExamQuestion: all of them, or an error that names each wrong row and the reason."""

import base64
import binascii
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from io import BytesIO

from PIL import Image

from eval_pipeline.errors import DatasetError
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.exam.convex_questions import bank_sources, read_bank
from eval_pipeline.suites.exam.files import COLUMNS, BadRow, Row, Rows, Source, read_rows
from eval_pipeline.suites.exam.hub import download

__all__ = ["DatasetError", "load_questions"]

ANSWER_TYPES = ("exactMatch", "multipleChoice")
MAX_ID_LENGTH = 200
MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_IMAGE_PIXELS = 50_000_000

_SHOWN_PROBLEMS = 5
_SHOWN_CHARACTERS = 60
_IMAGE_HEADER = re.compile(r"data:image/([a-z]+)(?:;[^;,]*)*;base64", re.IGNORECASE)
_FORMATS = {"png": "PNG", "jpeg": "JPEG", "jpg": "JPEG", "gif": "GIF", "webp": "WEBP"}
# What Pillow's decoders are known to raise on bytes that are not what they claim to be.
_DECODING_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    EOFError,
    MemoryError,
    struct.error,
    zlib.error,
)


def load_questions(suite: Suite, settings: Settings) -> Iterator[ExamQuestion]:
    """Every question of a suite in the order of its rows; whether all are right, the end tells."""
    problems, ids = _Problems(), _Ids()
    sources, read = _sources(suite, settings)
    for source in sources:
        ids.begin(source)
        for row in read(source):
            fields, reasons = _read(row, source.cluster)
            ids.note(fields.get("id"), row.number, reasons)
            problems.add(source, row, reasons)
            if not problems.count:
                yield ExamQuestion.model_validate({"suite": suite.name, **fields})
    if problems.count:
        raise DatasetError(problems.summary())
    if not ids.count:
        raise DatasetError(f"{sources[0].shown}: the data set has no rows.")


def _sources(suite: Suite, settings: Settings) -> tuple[list[Source], Callable[[Source], Rows]]:
    """The files of a suite, and what reads them."""
    setting = f"suites.{suite.name}"
    if suite.path is None:
        return _downloaded(suite, settings, f"{setting}.hub"), read_rows
    path = settings.path(suite.path)
    if not path.is_dir():
        return [Source(path, str(suite.path), f"{setting}.path", suite.cluster)], read_rows
    if suite.cluster is not None:
        raise DatasetError(
            f"{setting}.cluster: questions in a folder are grouped by their tasks; leave it out."
        )
    return bank_sources(path, str(suite.path), f"{setting}.path"), read_bank


def _downloaded(suite: Suite, settings: Settings, setting: str) -> list[Source]:
    if suite.hub is None:
        raise DatasetError(f"suites.{suite.name}: there must be either `path` or `hub`.")
    token = settings.key("HF_TOKEN")
    paths = download(
        suite.hub,
        token=token.get_secret_value() if token else None,
        endpoint=settings.hub_endpoint,
        cache=settings.data / "hub",
    )
    repository = suite.hub.repository
    return [Source(path, f"{repository} {path.name}", setting, suite.cluster) for path in paths]


def _read(row: Row | BadRow, cluster: str | None) -> tuple[dict[str, str | None], list[str]]:
    fields: dict[str, str | None] = {}
    reasons: list[str] = []
    if isinstance(row, BadRow):
        return fields, [row.reason]
    for name in COLUMNS:
        try:
            fields[name] = _CHECKS[name](_text(row.values.get(name)))
        except ValueError as error:
            reasons.append(f"{name} {error}")
    if cluster is not None:
        try:
            fields["cluster"] = _required(_text(row.values.get(cluster)))
        except ValueError as error:
            reasons.append(f"{cluster}, which the suite's `cluster` names, {error}")
    return fields, reasons


class _Ids:
    """Every id so far with the row it was first seen in."""

    def __init__(self) -> None:
        self._rows: list[tuple[Source, dict[str, int]]] = []

    @property
    def count(self) -> int:
        return sum(len(rows) for _, rows in self._rows)

    def begin(self, source: Source) -> None:
        self._rows.append((source, {}))

    def note(self, item_id: str | None, number: int, reasons: list[str]) -> None:
        if item_id is None:
            return
        for source, rows in self._rows:
            if item_id in rows:
                reasons.append(f"id is the same as in {source.shown} row {rows[item_id]}")
                return
        self._rows[-1][1][item_id] = number


@dataclass
class _Problems:
    """What is wrong with the rows: the first few in words, all of them counted."""

    shown: list[str] = field(default_factory=list)
    count: int = 0

    def add(self, source: Source, row: Row | BadRow, reasons: list[str]) -> None:
        self.count += len(reasons)
        room = _SHOWN_PROBLEMS - len(self.shown)
        self.shown += [f"{_place(source, row)}: {reason}." for reason in reasons[:room]]

    def summary(self) -> str:
        lines = list(self.shown)
        if more := self.count - len(lines):
            are = "is 1 more problem" if more == 1 else f"are {more} more problems"
            lines.append(f"There {are}.")
        return "\n".join(lines)


def _place(source: Source, row: Row | BadRow) -> str:
    item_id = row.values.get("id") if isinstance(row, Row) else None
    named = f" (id {_shown(str(item_id))})" if item_id not in (None, "") else ""
    return f"{source.shown}: row {row.number}{named}" if row.number else source.shown


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…")


def _text(value: object) -> str:
    """A cell as text; nothing (null, NaN, no such column) is the empty string."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, str | int | float | Decimal):
        raise ValueError("must be text or a number")
    text = str(value)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("has half a surrogate pair, which is not valid Unicode") from None
    return text


def _required(text: str) -> str:
    if not text.strip():
        raise ValueError("is missing or blank")
    return text


def _item_id(text: str) -> str:
    _required(text)
    if len(text) > MAX_ID_LENGTH:
        raise ValueError(f"must have at most {MAX_ID_LENGTH} characters, it has {len(text)}")
    if re.search(r"[\x00-\x1f\x7f-\x9f]", text):
        raise ValueError("must have no control characters")
    return text


def _answer_type(text: str) -> str:
    if _required(text) not in ANSWER_TYPES:
        raise ValueError(f"must be {' or '.join(ANSWER_TYPES)}, not {_shown(text)}")
    return text


def _optional(text: str) -> str:
    return text


def _image(text: str) -> str | None:
    if not text.strip():
        return None
    header, _, data = text.partition(",")
    match = _IMAGE_HEADER.fullmatch(header)
    declared = _FORMATS.get(match[1].lower()) if match else None
    if declared is None:
        raise ValueError(
            "must be a base64 data URI of type image/png, image/jpeg, image/gif or image/webp; "
            f"only data URIs are allowed, no addresses or file paths, not {_shown(text)}"
        )
    real = _real_format(_decoded(data), declared)
    # Public sets have images under a wrong type; servers go by the type, so it is put right.
    return text if real == declared else f"data:image/{real.lower()};base64,{data}"


def _decoded(data: str) -> bytes:
    # Judged by the length of the text, so that a huge one is never decoded.
    if len(data) // 4 * 3 > MAX_IMAGE_BYTES + 2:
        raise ValueError(f"must have at most {MAX_IMAGE_BYTES // 1024**2} MiB")
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("has broken base64") from None
    if len(content) > MAX_IMAGE_BYTES:
        raise ValueError(f"must have at most {MAX_IMAGE_BYTES // 1024**2} MiB")
    return content


def _real_format(content: bytes, declared: str) -> str:
    """The format of an image that decodes as a whole."""
    too_large = f"must have at most {MAX_IMAGE_PIXELS // 1_000_000} million pixels"
    try:
        with Image.open(BytesIO(content), formats=sorted(set(_FORMATS.values()))) as image:
            # A camera's JPEG with a second picture inside is called MPO by Pillow.
            real = "JPEG" if image.format == "MPO" else str(image.format)
            width, height = image.size
            if width * height <= MAX_IMAGE_PIXELS:
                image.load()
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise ValueError(too_large) from None
    except _DECODING_ERRORS:
        raise ValueError(f"can not be decoded as {declared}") from None
    if width * height > MAX_IMAGE_PIXELS:
        raise ValueError(too_large)
    return real


_CHECKS: Mapping[str, Callable[[str], str | None]] = {
    "id": _item_id,
    "question": _required,
    "answer": _required,
    "answer_type": _answer_type,
    "category": _required,
    "image": _image,
    "rationale": _optional,
    "raw_subject": _optional,
}
