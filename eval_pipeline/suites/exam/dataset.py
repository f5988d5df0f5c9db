"""Raw rows -> ExamQuestion: all of them, or an error that names each wrong row and the reason."""

import base64
import binascii
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from io import BytesIO

from PIL import Image

from eval_pipeline.errors import NAMED_PROBLEMS, DatasetError
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.exam.convex_questions import bank_sources, read_bank
from eval_pipeline.suites.exam.files import BadRow, Row, Rows, Source, read_rows
from eval_pipeline.suites.exam.hub import download
from eval_pipeline.text import quoted

ANSWER_TYPES = ("exactMatch", "multipleChoice")
MAX_ID_LENGTH = 200
MAX_IMAGE_BYTES = 20 * 1024 * 1024
MAX_IMAGE_PIXELS = 50_000_000

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
    problems: list[str] = []
    count, seen = 0, dict[str, tuple[Source, int]]()
    sources, read = _sources(suite, settings)
    for source in sources:
        for row in read(source):
            fields, reasons = _read(row, source.cluster)
            if (item_id := fields.get("id")) is not None:
                other, number = seen.setdefault(item_id, (source, row.number))
                if (other, number) != (source, row.number):
                    reasons.append(f"id is the same as in {other.shown} row {number}")
            count += len(reasons)
            room = NAMED_PROBLEMS - len(problems)
            problems += [f"{_place(source, row)}: {reason}." for reason in reasons[:room]]
            if not count:
                yield ExamQuestion.model_validate({"suite": suite.name, **fields})
    if count:
        raise DatasetError.of(problems, count)
    if not seen:
        raise DatasetError(f"{sources[0].shown}: the data set has no rows.")


def _sources(suite: Suite, settings: Settings) -> tuple[list[Source], Callable[[Source], Rows]]:
    """The files of a suite, and what reads them."""
    setting = f"suites.{suite.name}"
    if suite.hub is not None:
        token = settings.key("HF_TOKEN")
        paths = download(
            suite.hub,
            token=token.get_secret_value() if token else None,
            endpoint=settings.hub_endpoint,
            cache=settings.data / "hub",
        )
        names = [f"{suite.hub.repository} {path.name}" for path in paths]
        pairs = zip(paths, names, strict=True)
        return [Source(*pair, f"{setting}.hub", suite.cluster) for pair in pairs], read_rows
    if suite.path is None:
        raise DatasetError(f"{setting}: there must be either `path` or `hub`.")
    path = settings.path(suite.path)
    if not path.is_dir():
        return [Source(path, str(suite.path), f"{setting}.path", suite.cluster)], read_rows
    if suite.cluster is not None:
        raise DatasetError(
            f"{setting}.cluster: questions in a folder are grouped by their tasks; leave it out."
        )
    return bank_sources(path, str(suite.path), f"{setting}.path"), read_bank


def _read(row: Row | BadRow, cluster: str | None) -> tuple[dict[str, str | None], list[str]]:
    """Return the fields of a row that are right, and what is wrong with the others."""
    fields: dict[str, str | None] = {}
    reasons: list[str] = []
    if isinstance(row, BadRow):
        return fields, [row.reason]
    for name, check in _CHECKS.items():
        try:
            fields[name] = check(_text(row.values.get(name)))
        except ValueError as error:
            reasons.append(f"{name} {error}")
    if cluster is not None:
        try:
            fields["cluster"] = _required(_text(row.values.get(cluster)))
        except ValueError as error:
            reasons.append(f"{cluster}, which the suite's `cluster` names, {error}")
    return fields, reasons


def _place(source: Source, row: Row | BadRow) -> str:
    item_id = row.values.get("id") if isinstance(row, Row) else None
    named = f" (id {quoted(str(item_id))})" if item_id not in (None, "") else ""
    return f"{source.shown}: row {row.number}{named}" if row.number else source.shown


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
        raise ValueError(f"must be {' or '.join(ANSWER_TYPES)}, not {quoted(text)}")
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
            f"only data URIs are allowed, no addresses or file paths, not {quoted(text)}"
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
    "rationale": str,
    "raw_subject": str,
}
