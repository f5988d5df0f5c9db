"""The two kinds of Inspect's log files: an archive with a file per sample, and one JSON document.

Samples are written one by one, so that a log of any size needs little memory.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import orjson

from eval_pipeline.inspect_log.gathering import RunToLog
from eval_pipeline.inspect_log.header import header_of, names_of, start_of
from eval_pipeline.inspect_log.messages import Document
from eval_pipeline.inspect_log.samples import Answered, sample_of, summary_of
from eval_pipeline.results.export import ExportError, replacing

PACKED_AS_WELL_AS = 3
"""Of 9: better takes twice as long and saves a tenth."""


def export_log(run: RunToLog, path: Path, *, force: bool = False) -> int:
    """Writes the log, whole or not at all; returns how many samples are in it."""
    write = _WRITERS.get(path.suffix.lower())
    if write is None:
        raise ExportError(
            f"{path}: the name has to end in .eval (an archive) or .json (one document)."
        )
    if path.exists() and not force:
        raise ExportError(
            f"{path} is there already: name another file, or replace it with --force."
        )
    with replacing(path) as unfinished:
        return write(run, unfinished)


def _write_archive(run: RunToLog, path: Path) -> int:
    header, count = header_of(run.facts), 0
    with (
        ZipFile(path, "w", ZIP_DEFLATED, compresslevel=PACKED_AS_WELL_AS) as archive,
        TemporaryFile(dir=path.parent) as summaries,
    ):
        archive.writestr("_journal/start.json", _json(start_of(header)))
        for count, (one, sample) in enumerate(_samples(run), start=1):
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, _json(sample))
            summaries.write(b"[" if count == 1 else b",")
            summaries.write(_json(summary_of(sample, one.item.question)))
        summaries.write(b"]" if count else b"[]")
        summaries.seek(0)
        with archive.open("summaries.json", "w") as target:
            copyfileobj(summaries, target)
        archive.writestr("header.json", _json(header))
    return count


def _write_document(run: RunToLog, path: Path) -> int:
    header, count = header_of(run.facts), 0
    with path.open("wb") as file:
        file.write(_json(header).removesuffix(b"}") + b',"samples":[')
        for count, (_, sample) in enumerate(_samples(run), start=1):
            file.write(b"\n" if count == 1 else b",\n")
            file.write(_json(sample))
        file.write(b"]}\n")
    return count


_WRITERS: dict[str, Callable[[RunToLog, Path], int]] = {
    ".eval": _write_archive,
    ".json": _write_document,
}


def _samples(run: RunToLog) -> Iterator[tuple[Answered, Document]]:
    names = names_of(run.facts.gradings)
    return ((one, sample_of(one, names)) for one in run.answered())


def _json(document: Any) -> bytes:
    """Numbers that are none are null, moments as in ISO 8601."""
    return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
