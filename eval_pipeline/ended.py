"""How the evaluations of a Dagster run stood when it ended, however it ended: from the journal."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from eval_pipeline.building import load
from eval_pipeline.errors import MendableError
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, FileCompactedError, Journal, Stream
from eval_pipeline.journal.files import JSONL
from eval_pipeline.queries import apply_migrations, query, rows
from eval_pipeline.record import Record

TRIES = 3
FRUGAL = {"threads": "1", "preserve_insertion_order": "false"}
WRITTEN: tuple[Stream[Any], ...] = (PREDICTIONS, JUDGED)

log = logging.getLogger(__name__)


class Asked(Record):
    """What a Dagster run had to do with: its own id and its parts', and whom it asked when (UTC).

    If it only judged, it `predicted` nothing: replies of that time are not its own.
    """

    run_ids: tuple[str, ...]
    models: tuple[str, ...] | None
    since: datetime
    until: datetime
    predicted: bool


class Ended(Record):
    """What the evaluation of a model has come to, in counts by outcome."""

    model: str
    planned: int
    predicted: str
    judged: str
    cost_usd: float
    costs_unknown: int


def read_ended(journal: Journal, asked: Asked) -> tuple[Ended, ...]:
    """How far the run had come, though it was killed or others go on; unreadable: left out.

    Nothing is published for it: that could take longer than Dagster waits for a sensor.
    """
    for _ in range(TRIES):
        try:
            return _count(journal, asked)
        except (FileCompactedError, FileNotFoundError):  # a file was compacted meanwhile
            continue
        except (duckdb.Error, MendableError, OSError) as error:
            log.warning("The counts can not be read now: %s", error)
            return ()
    log.warning("The counts can not be read now: files come and go.")
    return ()


def _count(journal: Journal, asked: Asked) -> tuple[Ended, ...]:
    files = _files(journal, asked)
    with duckdb.connect(config={**FRUGAL}) as db:
        apply_migrations(db)
        load(db, RUNS, files[RUNS])
        for stream in WRITTEN:
            load(db, stream, files[stream], as_of=asked.until)
        found = rows(query(db, "summaries/run_outcomes", asked.model_dump()))
    return tuple(Ended.model_validate(row) for row in found)


def _files(journal: Journal, asked: Asked) -> Mapping[Stream[Any], list[Path]]:
    """Those of the evaluations that it opened, and of all that were written to since it began."""
    models = journal.parts(RUNS) if asked.models is None else asked.models
    found = {
        stream: [path for model in models for path in journal.files(stream, model)]
        for stream in (RUNS, *WRITTEN)
    }
    began = asked.since.replace(tzinfo=UTC).timestamp()
    written = [path for stream in WRITTEN for path in found[stream]]
    own = {_evaluation(path, journal) for path in found[RUNS] if path.stem in asked.run_ids}
    own |= {_evaluation(path, journal) for path in written if path.stat().st_mtime >= began}
    return {
        stream: [path for path in paths if _evaluation(path, journal) in own]
        for stream, paths in found.items()
    }


def _evaluation(path: Path, journal: Journal) -> tuple[str, str]:
    """Model and run, as files spell them: a run is a file, its replies are in a folder."""
    _, model, run, *_ = path.relative_to(journal.root).parts
    return model, run.removesuffix(JSONL)
