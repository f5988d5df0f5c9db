"""Sends runs of the local journal to another deployment: what is there already stays as it is."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from typing import NamedTuple, TypeVar

from eval_pipeline.errors import RunError
from eval_pipeline.gateways.catalog import PreviousCatalog
from eval_pipeline.interop.remote.client import PushError, Server
from eval_pipeline.interop.remote.messages import (
    JSON,
    LINES,
    MOST_BYTES,
    MOST_RECORDS,
    RUNS_PATH,
    VERSIONS_PATH,
    ClosedRun,
    KeptVersion,
    OpenedRun,
    Received,
    RunToOpen,
    encode_segment,
)
from eval_pipeline.journal import (
    JUDGED,
    PREDICTIONS,
    RUNS,
    SIGHTINGS,
    VERSIONS,
    FileCompactedError,
    Journal,
)
from eval_pipeline.journal.files import as_line
from eval_pipeline.records.base import Record
from eval_pipeline.records.item import BenchmarkVersion
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.suites.benchmark import past_items

BATCH_BYTES = MOST_BYTES // 4
"""Of one request: less than may be sent, so that little is sent again if the line breaks."""
TRIES = 3
R = TypeVar("R", Prediction, Judgement)


class Sent(NamedTuple):
    """How many records went through, and how many of them were not there before."""

    records: int = 0
    new: int = 0

    def plus(self, received: Received) -> "Sent":
        """With another batch."""
        return Sent(self.records + received.received, self.new + received.new)


class Pushed(NamedTuple):
    """What became of a run at the other end."""

    run_id: str
    model: str
    is_new: bool
    planned: int
    predictions: Sent
    judgements: Sent


def chosen_runs(found: Sequence[FoundRun], models: Sequence[str]) -> list[FoundRun]:
    """Of a run's models these, or all of them."""
    known = {run.model for run in found}
    for model in models:
        if model not in known:
            raise RunError(f"Run {found[0].run_id[:8]} has no model {model}.")
    return [run for run in found if not models or run.model in models]


def push_run(journal: Journal, server: Server, model: str, run_id: str) -> Pushed:
    """Sends the run with its benchmark version; interrupted, it is simply sent again."""
    for _ in range(TRIES - 1):
        with suppress(FileCompactedError):  # a file was compacted meanwhile
            return _push(journal, server, model, run_id)
    return _push(journal, server, model, run_id)


def _push(journal: Journal, server: Server, model: str, run_id: str) -> Pushed:
    run = next(journal.read_file(RUNS, model, run_id))
    for version in journal.read(VERSIONS):
        if version.benchmark_version == run.benchmark_version:
            _push_version(journal, server, version)
    seen = PreviousCatalog.of(journal.read(SIGHTINGS)).latest.get(model)
    wanted = [as_line(RunToOpen(run=run, sighting=seen))]
    opened = server.post(RUNS_PATH, OpenedRun, wanted, JSON)
    path = f"{RUNS_PATH}/{encode_segment(run_id)}/{encode_segment(model)}"
    sent: set[str] = set()
    predictions = _push_all(server, f"{path}/predictions", predictions_of(journal, run, sent))
    judgements = _push_all(server, f"{path}/judgements", judgements_of(journal, run, sent))
    server.post(f"{path}/close", ClosedRun)
    return Pushed(run_id, model, opened.state == "new", run.planned, predictions, judgements)


def _push_version(journal: Journal, server: Server, version: BenchmarkVersion) -> None:
    """At first without its items, which may be there."""
    kept = server.post(VERSIONS_PATH, KeptVersion, [as_line(version)], LINES)
    if kept.state == "incomplete":
        items = past_items(journal, version.benchmark_version)
        chosen = (items[key] for key in items if key.suite in kept.missing)
        content = map(as_line, chain[Record]([version], chosen))
        kept = server.post(VERSIONS_PATH, KeptVersion, content, LINES)
    if kept.state == "incomplete":
        raise PushError("The server does not keep the items of the benchmark version.")


def predictions_of(journal: Journal, run: Run, sent: set[str]) -> Iterator[Prediction]:
    """All of the run's; `sent` has their ids afterwards."""
    for one in journal.read(PREDICTIONS, run.model, run.run_id):
        sent.add(one.prediction_id)
        yield one


def judgements_of(journal: Journal, run: Run, sent: set[str]) -> Iterator[Judgement]:
    """Without those whose reply was not carried over before a launch was killed."""
    for one in journal.read(JUDGED, run.model, run.run_id):
        if one.prediction_id in sent:
            yield one


def _push_all(server: Server, path: str, records: Iterable[R]) -> Sent:
    sent, field = Sent(), path.rpartition("/")[2]
    for batch in batches(map(as_line, records)):
        content = [b'{"%s": [' % field.encode(), b",".join(batch), b"]}"]
        sent = sent.plus(server.post(path, Received, content, JSON))
    return sent


def batches(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """As many at a time as go into one request."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == MOST_RECORDS or size + len(line) > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch
