"""Copies runs of another deployment into this one: what is here already stays as it is."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain
from tempfile import TemporaryFile
from typing import NamedTuple, TypeVar

from eval_pipeline.gateways.catalog import PreviousCatalog
from eval_pipeline.interop.remote.messages import MOST_RECORDS, KeptVersion, Received, RunToOpen
from eval_pipeline.interop.remote.push import TRIES, judgements_of, predictions_of
from eval_pipeline.interop.remote.receive import Receiver
from eval_pipeline.interop.remote.versions import keep_version
from eval_pipeline.journal import RUNS, SIGHTINGS, VERSIONS, FileCompactedError, Journal
from eval_pipeline.journal.files import as_line
from eval_pipeline.records.base import Record
from eval_pipeline.records.item import BenchmarkVersion
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.suites.benchmark import past_items

R = TypeVar("R", Prediction, Judgement)


class Synced(NamedTuple):
    """What of a run was not here before."""

    run_id: str
    model: str
    is_new: bool
    predictions: int
    judgements: int

    @property
    def is_changed(self) -> bool:
        return bool(self.is_new or self.predictions or self.judgements)


def sync_run(source: Journal, here: Receiver, model: str, run_id: str) -> Synced:
    """Takes in the run with its benchmark version; interrupted, it is simply done again."""
    for _ in range(TRIES - 1):
        with suppress(FileCompactedError):  # a file was compacted meanwhile
            return _sync(source, here, model, run_id)
    return _sync(source, here, model, run_id)


def _sync(source: Journal, here: Receiver, model: str, run_id: str) -> Synced:
    run = next(source.read_file(RUNS, model, run_id))
    for version in source.read(VERSIONS):
        if version.benchmark_version == run.benchmark_version:
            _keep_version(source, here.journal, version)
    seen = PreviousCatalog.of(source.read(SIGHTINGS)).latest.get(model)
    opened = here.open_run(RunToOpen(run=run, sighting=seen))
    sent: set[str] = set()
    predictions = [
        here.take_predictions(run_id, model, some)
        for some in _batches(predictions_of(source, run, sent))
    ]
    judgements = [
        here.take_judgements(run_id, model, some)
        for some in _batches(judgements_of(source, run, sent))
    ]
    return Synced(run_id, model, opened.state == "new", _new(predictions), _new(judgements))


def _keep_version(source: Journal, here: Journal, version: BenchmarkVersion) -> None:
    """At first without its items, which may be here."""
    if _kept(here, [version]).state == "incomplete":
        items = past_items(source, version.benchmark_version)
        _kept(here, chain[Record]([version], (items[key] for key in items)))


def _kept(here: Journal, records: "Sequence[Record] | chain[Record]") -> KeptVersion:
    with TemporaryFile() as file:
        file.writelines(map(as_line, records))
        return keep_version(here, file)


def _batches(records: Iterator[R]) -> Iterator[list[R]]:
    batch: list[R] = []
    for one in records:
        batch.append(one)
        if len(batch) == MOST_RECORDS:
            yield batch
            batch = []
    if batch:
        yield batch


def _new(received: Sequence[Received]) -> int:
    return sum(one.new for one in received)
