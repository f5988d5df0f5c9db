"""Writing a run as a log of Inspect's, a few items at a time."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import duckdb
import orjson

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.item_prompt import rebuilding
from eval_pipeline.interop.inspect.convert import (
    Answered,
    Facts,
    header_of,
    sample_id,
    sample_of,
    summary_of,
)
from eval_pipeline.journal import Journal
from eval_pipeline.records.item import ItemKey
from eval_pipeline.results.export import ExportError, replacing
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import FoundRun, Row
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import past_items

BATCH = 100
"""Items that are in memory at once with all that is known of them."""
COMPRESSION_LEVEL = 3
"""Of 9: better takes twice as long and saves a tenth."""


class RunToLog:
    """A run of one model with all that its log is made of."""

    def __init__(
        self, db: duckdb.DuckDBPyConnection, settings: Settings, journal: Journal, found: FoundRun
    ) -> None:
        # What was read is not read again, so that to keep it would be in vain.
        db.execute("set memory_limit = '128MB'")
        about = {"run_id": found.run_id, "model": found.model}
        (run,) = rows(query(db, "summaries/run_described", about))
        run |= {"parameters": json.loads(run["parameters"])}
        (used,) = rows(query(db, "inspect/used", about))
        gradings = rows(query(db, "inspect/gradings", about))
        if not gradings:
            raise RunError(f"Run {found.run_id[:8]} of {found.model} has nothing to write.")
        self._db = db
        self._items = past_items(journal, run["benchmark_version"])
        self._prompt = rebuilding(settings, journal, run)
        planned = {ItemKey(*one) for one in query(db, "inspect/planned", about).fetchall()}
        self._keys = [key for key in self._items if key in planned]
        suites = list(dict.fromkeys(key.suite for key in self._keys))
        # The items' ids are unique within a suite only.
        names = ["/".join(key) if len(suites) > 1 else key.item_id for key in self._keys]
        self.facts = Facts(run, used, gradings, suites, [sample_id(name) for name in names])

    def answered(self) -> Iterator[Answered]:
        """Yield every planned sample, item by item in the order of the data set."""
        named_keys = list(zip(self.facts.sample_ids, self._keys, strict=True))
        for start in range(0, len(named_keys), BATCH):
            yield from self._answered(named_keys[start : start + BATCH])

    def _answered(self, named_keys: Sequence[tuple[str, ItemKey]]) -> Iterator[Answered]:
        keys = [key for _, key in named_keys]
        replies = {
            (row["suite"], row["item_id"], row["sample"]): row
            for row in self._rows("inspect/replies", keys)
        }
        verdicts: defaultdict[str, list[Row]] = defaultdict(list)
        for row in self._rows("inspect/verdicts", keys):
            verdicts[row["prediction_id"]].append(row)
        for name, key in named_keys:
            item = self._items[key]
            prompt = self._prompt(item)
            for sample in range(self.facts.run["samples"]):
                found = replies.get((*key, sample))
                said = verdicts[found["prediction_id"]] if found else []
                yield Answered(name, item, prompt, sample, found, said)

    def _rows(self, name: str, keys: Sequence[ItemKey]) -> list[Row]:
        run = self.facts.run
        given = {"suites": [key.suite for key in keys], "items": [key.item_id for key in keys]}
        return rows(
            query(self._db, name, {"run_id": run["run_id"], "model": run["model"], **given})
        )


def export_log(run: RunToLog, path: Path, *, force: bool = False) -> int:
    """Write the log, whole or not at all; return how many samples are in it."""
    write = {".eval": _write_archive, ".json": _write_document}.get(path.suffix.lower())
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
        ZipFile(path, "w", ZIP_DEFLATED, compresslevel=COMPRESSION_LEVEL) as archive,
        TemporaryFile(dir=path.parent) as summaries,
    ):
        start = {name: header[name] for name in ("version", "eval", "plan")}
        archive.writestr("_journal/start.json", _json(start))
        for count, one in enumerate(run.answered(), start=1):
            sample = sample_of(one, run.facts)
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
        for count, one in enumerate(run.answered(), start=1):
            file.write(b"\n" if count == 1 else b",\n")
            file.write(_json(sample_of(one, run.facts)))
        file.write(b"]}\n")
    return count


def _json(document: Any) -> bytes:
    """Return JSON with null for numbers that are none, and moments as in ISO 8601."""
    return orjson.dumps(document, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_UTC_Z)
