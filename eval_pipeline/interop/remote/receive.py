"""Runs from elsewhere: each record is kept once, however often it is sent.

Nothing that is sent is trusted. All of a batch is kept, or nothing of it.
"""

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import chain
from secrets import token_hex
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, Generic, TypeVar

from eval_pipeline.evaluation import state
from eval_pipeline.evaluation.deletion import is_at_work
from eval_pipeline.evaluation.runs import scope_of
from eval_pipeline.hashing import fingerprint
from eval_pipeline.interop.remote.messages import (
    ClosedRun,
    KeptVersion,
    OpenedRun,
    Received,
    RefusedError,
    RunToOpen,
)
from eval_pipeline.interop.remote.versions import keep_version
from eval_pipeline.journal import (
    JUDGED,
    PREDICTIONS,
    RUNS,
    SIGHTINGS,
    VERSIONS,
    Journal,
    Stream,
)
from eval_pipeline.journal.files import Source, as_line, read_file, source
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.item import BenchmarkVersion, Item, ItemKey
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.benchmark import past_items
from eval_pipeline.suites.items import Places

CACHED_RUNS = 16
PATIENCE_S = 10.0
"""Seconds that a sender waits for others who send something of the same model."""
MOST_REPLIES = 1_000_000
ELSEWHERE = "It is evaluated elsewhere, and its runs are sent here."
"""The reason why a model that no gateway here has offered is not asked."""
B = TypeVar("B", bound=Record)
K = TypeVar("K", bound=Hashable)
R = TypeVar("R", Prediction, Judgement)


class CachedKeys(Generic[B, K]):
    """The keys of a stream's records in the latest runs; correct only while the run is claimed."""

    def __init__(self, journal: Journal, stream: Stream[B], key: Callable[[B], K]) -> None:
        self._journal = journal
        self._stream = stream
        self._key = key
        self._runs: dict[tuple[str, str], dict[Source, list[K]]] = {}
        self._lock = Lock()

    def read(self, model: str, run_id: str) -> Iterator[K]:
        """Return the keys of the run's records; files that were read before are not read again."""
        files = self._read(model, run_id)
        with self._lock:
            self._runs.pop((model, run_id), None)
            self._runs[model, run_id] = files
            if len(self._runs) > CACHED_RUNS:
                del self._runs[next(iter(self._runs))]
        return chain.from_iterable(files.values())

    @state.repeat_if_compacted
    def _read(self, model: str, run_id: str) -> dict[Source, list[K]]:
        before, files = self._runs.get((model, run_id), {}), {}
        for path in self._journal.files(self._stream, model, run_id):
            file = source(path)
            keys = before.get(file)
            if keys is None:
                keys = [self._key(one) for one in read_file(path, self._stream.record)]
            files[file] = keys
        return files


def _verdict_key(one: state.JudgementBrief | Judgement) -> tuple[str, str, str, datetime]:
    """Return the key of a verdict in a run: a judge may have judged a reply more than once."""
    return one.prediction_id, one.judge, one.judge_version, one.finished_at


class Receiver:
    """A deployment that runs are sent to; it caches which records the latest runs have."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.journal = warehouse.journal
        self._replies = CachedKeys(
            self.journal,
            state.PREDICTION_BRIEFS,
            lambda one: (one.prediction_id, state.ReplyKey(one.key, one.sample)),
        )
        self._verdicts = CachedKeys(self.journal, state.JUDGEMENT_BRIEFS, _verdict_key)

    def keep_version(self, version: BenchmarkVersion, items: Iterable[Item] = ()) -> KeptVersion:
        """Keep a benchmark version; items of suites that are here already may be left out."""
        with TemporaryFile() as file:
            file.writelines(map(as_line, chain[Record]([version], items)))
            return keep_version(self.journal, file)

    def open_run(self, wanted: RunToOpen) -> OpenedRun:
        """Open the run unless it is open; refuse it if another run has its id."""
        run = wanted.run
        with self._claim(PREDICTIONS, run.model, run.run_id):
            if self.journal.exists(RUNS, run.model, run.run_id):
                if self._run(run.model, run.run_id) != run:
                    raise RefusedError("Another run of this model is here under the same id.", 409)
                return OpenedRun(state="known")
            _check_run(self.journal, wanted)
            if wanted.sighting is not None:
                keep_sighting(self.journal, wanted.sighting)
            self.journal.write_whole(RUNS, run.model, run.run_id, records=[run])
        return OpenedRun(state="new")

    def take_predictions(
        self, run_id: str, model: str, predictions: Sequence[Prediction]
    ) -> Received:
        """Keep those that are not here yet."""
        with self._claim(PREDICTIONS, model, run_id):
            run = self._run(model, run_id)
            _check_plan(run, predictions, "predictions")
            before = dict(self._replies.read(model, run_id))
            replies = dict(before)
            for place, one in enumerate(predictions):
                if replies.setdefault(one.prediction_id, _reply(one)) != _reply(one):
                    raise RefusedError(
                        f"predictions[{place}]: its prediction_id is that of another reply."
                    )
            keys = [one.prediction_id for one in predictions]
            return self._keep(PREDICTIONS, run, predictions, keys, before)

    def take_judgements(self, run_id: str, model: str, judgements: Sequence[Judgement]) -> Received:
        """Keep those that are not here yet; the predictions they are about have to be here."""
        with self._claim(JUDGED, model, run_id):
            run = self._run(model, run_id)
            _check_plan(run, judgements, "judgements")
            replies = dict(self._replies.read(model, run_id))
            for place, one in enumerate(judgements):
                if replies.get(one.prediction_id) != _reply(one):
                    raise RefusedError(
                        f"judgements[{place}]: the run has no such prediction of this reply."
                    )
            before = set(self._verdicts.read(model, run_id))
            keys = [_verdict_key(one) for one in judgements]
            return self._keep(JUDGED, run, judgements, keys, before)

    def close(self, run_id: str, model: str) -> ClosedRun:
        """Compact the run's files and publish it; more may come, and it is closed again."""
        run = self._run(model, run_id)
        for stream in (PREDICTIONS, JUDGED):
            with self._claim(stream, model, run_id):
                self.journal.compact(stream, model, run_id)
        self.warehouse.publish()
        return ClosedRun(
            planned=run.planned,
            predictions=len(dict(self._replies.read(model, run_id))),
            judgements=len(set(self._verdicts.read(model, run_id))),
        )

    def _run(self, model: str, run_id: str) -> Run:
        if not self.journal.exists(RUNS, model, run_id):
            raise RefusedError("There is no such run of this model here: open it first.", 404)
        return state.read_run(self.journal, model, run_id)

    def _keep(
        self,
        stream: Stream[R],
        run: Run,
        received: Sequence[R],
        keys: Sequence[K],
        before: Container[K],
    ) -> Received:
        new: dict[K, R] = {}
        for key, record in zip(keys, received, strict=True):
            if key not in before:
                new.setdefault(key, record)
        if new:
            name = f"posted-{now():%Y%m%dT%H%M%S.%f}-{token_hex(6)}"
            self.journal.write_whole(stream, run.model, run.run_id, name, records=new.values())
        return Received(received=len(received), new=len(new), known=len(received) - len(new))

    @contextmanager
    def _claim(self, stream: Stream[Any], model: str, run_id: str) -> Iterator[None]:
        """Hold the model's lock for this stream; refuse if a launch here works on the run."""
        self._refuse_at_work(model, run_id)
        with self.journal.claim_soon(stream, model, PATIENCE_S):
            self._refuse_at_work(model, run_id)
            yield

    def _refuse_at_work(self, model: str, run_id: str) -> None:
        if is_at_work(self.journal, model, run_id):
            raise busy("A launch here is at work on this model: try again later.")


def busy(message: str) -> RefusedError:
    """Return the refusal that asks the sender to try again in some seconds."""
    return RefusedError(message, 409, {"Retry-After": "5"})


def _reply(record: Prediction | Judgement) -> state.ReplyKey:
    return state.ReplyKey(ItemKey(record.suite, record.item_id), record.sample)


def _check_plan(run: Run, records: Sequence[R], what: str) -> None:
    replies = state.Replies(run.plan, run.samples)
    for place, one in enumerate(records):
        if (one.run_id, one.model) != (run.run_id, run.model):
            raise RefusedError(f"{what}[{place}]: it names another run or another model.")
        if replies.find(_reply(one).key, one.sample) is None:
            raise RefusedError(f"{what}[{place}]: the run's plan has no such item or sample.")


def _check_run(journal: Journal, wanted: RunToOpen) -> None:
    run, seen = wanted.run, wanted.sighting
    if seen is not None and (seen.model.id, seen.model.simulated) != (run.model, run.simulated):
        raise RefusedError("sighting: it is of another model than the run.")
    if not any(one.benchmark_version == run.benchmark_version for one in journal.read(VERSIONS)):
        raise RefusedError("run.benchmark_version: it is not known here; send the version first.")
    if not 0 < run.planned <= MOST_REPLIES:
        raise RefusedError(f"run.plan: it has to be of 1 to {MOST_REPLIES} replies.")
    items = past_items(journal, run.benchmark_version)
    places = Places(run.plan)
    for place, key in enumerate(run.plan):
        if key not in items:
            raise RefusedError(f"run.plan[{place}]: the benchmark version has no such item.")
        if places.find(key) != place:
            raise RefusedError(f"run.plan[{place}]: an item is planned once.")
    if run.scope is not (covers := scope_of(run.plan, items)):
        raise RefusedError(f"run.scope: by its plan it is {covers}.")


def keep_sighting(journal: Journal, posted: Sighting) -> None:
    """Journal the model unless it is known; never change what a gateway here said of it."""
    latest: Sighting | None = None
    asked_here: datetime | None = None
    for one in journal.read(SIGHTINGS):
        if one.kept_out != ELSEWHERE and one.model.gateway == posted.model.gateway:
            asked_here = max(one.seen_at, asked_here or one.seen_at)
        if one.model.id == posted.model.id:
            latest = one if latest is None or latest.seen_at <= one.seen_at else latest
    if latest is not None and (latest.kept_out != ELSEWHERE or latest.model == posted.model):
        return
    # As seen later, the others of that gateway would no longer count as listed.
    before = posted.seen_at if asked_here is None else asked_here - timedelta(microseconds=1)
    changes = {"selected": False, "kept_out": ELSEWHERE, "seen_at": min(posted.seen_at, before)}
    kept = posted.model_copy(update=changes)
    name = f"posted-{fingerprint(kept.model_dump(mode='json'))}"
    journal.write_whole(SIGHTINGS, name, records=[kept])
