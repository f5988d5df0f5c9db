"""Copying runs between deployments, over HTTP or from folder to folder: what is there stays."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.state import repeat_if_compacted
from eval_pipeline.gateways.catalog import PreviousCatalog
from eval_pipeline.interop.remote.client import PushError, Server
from eval_pipeline.interop.remote.messages import MOST_BYTES, MOST_RECORDS, Received, RunToOpen
from eval_pipeline.interop.remote.receive import Receiver
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, SIGHTINGS, VERSIONS, Journal
from eval_pipeline.journal.files import as_line
from eval_pipeline.records.item import BenchmarkVersion
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.suites.benchmark import past_items

BATCH_BYTES = MOST_BYTES // 4
"""Of one request: less than may be sent, so that little is sent again if the line breaks."""
R = TypeVar("R", Prediction, Judgement)


class Sent(NamedTuple):
    """Counts of the records that were sent, and of those that are new there."""

    records: int
    new: int


class Pushed(NamedTuple):
    """The result of copying a run."""

    run_id: str
    model: str
    is_new: bool
    planned: int
    predictions: Sent
    judgements: Sent

    @property
    def is_changed(self) -> bool:
        return bool(self.is_new or self.predictions.new or self.judgements.new)


def chosen_runs(found: Sequence[FoundRun], models: Sequence[str]) -> list[FoundRun]:
    """Return the runs of these models, or all of them if none is named."""
    known = {run.model for run in found}
    for model in models:
        if model not in known:
            raise RunError(f"Run {found[0].run_id[:8]} has no model {model}.")
    return [run for run in found if not models or run.model in models]


def push_run(journal: Journal, server: Server, model: str, run_id: str) -> Pushed:
    """Send the run with its benchmark version; after an interruption, send it again."""
    pushed = copy_run(journal, server, model, run_id)
    server.close(run_id, model)
    return pushed


@repeat_if_compacted
def copy_run(source: Journal, to: Server | Receiver, model: str, run_id: str) -> Pushed:
    """Copy the run with its benchmark version; it may be repeated."""
    run = next(source.read_file(RUNS, model, run_id))
    for version in source.read(VERSIONS):
        if version.benchmark_version == run.benchmark_version:
            _copy_version(source, to, version)
    seen = PreviousCatalog.of(source.read(SIGHTINGS)).latest.get(model)
    opened = to.open_run(RunToOpen(run=run, sighting=seen))
    sent: set[str] = set()

    def predictions() -> Iterator[Prediction]:
        for one in source.read(PREDICTIONS, model, run_id):
            sent.add(one.prediction_id)
            yield one

    # A launch that was killed may have left verdicts whose prediction was not carried over.
    judgements = (one for one in source.read(JUDGED, model, run_id) if one.prediction_id in sent)
    return Pushed(
        run_id,
        model,
        opened.state == "new",
        run.planned,
        _send(predictions(), lambda batch: to.take_predictions(run_id, model, batch)),
        _send(judgements, lambda batch: to.take_judgements(run_id, model, batch)),
    )


def _copy_version(source: Journal, to: Server | Receiver, version: BenchmarkVersion) -> None:
    """Send it without items first: they may be there."""
    kept = to.keep_version(version)
    if kept.state == "incomplete":
        items = past_items(source, version.benchmark_version)
        kept = to.keep_version(version, (items[key] for key in items if key.suite in kept.missing))
    if kept.state == "incomplete":
        raise PushError("The server does not keep the items of the benchmark version.")


def _send(records: Iterable[R], take: Callable[[list[R]], Received]) -> Sent:
    received = [take(batch) for batch in batches(records)]
    return Sent(sum(one.received for one in received), sum(one.new for one in received))


def batches(records: Iterable[R]) -> Iterator[list[R]]:
    """Yield as many records at a time as fit into one request."""
    batch: list[R] = []
    size = 0
    for record in records:
        length = len(as_line(record))
        if batch and (len(batch) == MOST_RECORDS or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += length
    if batch:
        yield batch
