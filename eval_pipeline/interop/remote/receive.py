"""Takes in runs that were evaluated elsewhere: each record once, whoever sends it how often.

Whatever is sent is somebody else's. All of a batch is kept, or nothing of it.
"""

from collections import OrderedDict
from collections.abc import Callable, Container, Hashable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from secrets import token_hex
from threading import Lock
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import AwareDatetime, ConfigDict

from eval_pipeline.evaluation.deletion import is_at_work
from eval_pipeline.evaluation.runs import scope_of
from eval_pipeline.evaluation.state import PREDICTION_BRIEFS, PredictionBrief, Replies, ReplyKey
from eval_pipeline.hashing import fingerprint
from eval_pipeline.interop.remote.errors import (
    AtWorkError,
    ConflictError,
    RefusedError,
    UnknownError,
)
from eval_pipeline.interop.remote.messages import ClosedRun, OpenedRun, Received, RunToOpen
from eval_pipeline.journal import (
    JUDGED,
    PREDICTIONS,
    RUNS,
    SIGHTINGS,
    VERSIONS,
    FileCompactedError,
    Journal,
    Stream,
)
from eval_pipeline.journal.files import Source, read_file, source
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.benchmark import past_items
from eval_pipeline.suites.items import Places

TRIES = 3
MOST_RUNS = 16
"""So many are kept in mind; what another run has is read anew when something comes for it."""
B = TypeVar("B", bound=Record)
K = TypeVar("K", bound=Hashable)


class VerdictBrief(Record):
    """Of a judgement, what tells it from every other one."""

    model_config = ConfigDict(extra="ignore")

    prediction_id: str
    judge: str
    judge_version: str
    finished_at: AwareDatetime


class VerdictKey(NamedTuple):
    """What names a verdict of a run: a judge may have been asked about a reply more than once."""

    prediction_id: str
    judge: str
    judge_version: str
    finished_at: AwareDatetime

    @classmethod
    def of(cls, verdict: VerdictBrief | Judgement) -> "VerdictKey":
        """That of a verdict."""
        return cls(verdict.prediction_id, verdict.judge, verdict.judge_version, verdict.finished_at)


class Known(Generic[B, K]):
    """The keys of one stream's records, by run; only while the run is claimed."""

    def __init__(self, stream: Stream[B], key: Callable[[B], K]) -> None:
        self._stream = stream
        self._key = key
        self._runs: OrderedDict[tuple[str, str, str], dict[Source, list[K]]] = OrderedDict()
        self._lock = Lock()

    def keys(self, journal: Journal, model: str, run_id: str) -> Iterator[K]:
        """Those of all records that the run has."""
        for _ in range(TRIES - 1):
            with suppress(FileCompactedError):  # a file was compacted meanwhile
                return self._keys(journal, model, run_id)
        return self._keys(journal, model, run_id)

    def _keys(self, journal: Journal, model: str, run_id: str) -> Iterator[K]:
        run = (str(journal.root), model, run_id)
        before, files = self._runs.get(run, {}), {}
        for path in journal.files(self._stream, model, run_id):
            file = source(path)
            if file not in before:
                files[file] = [self._key(one) for one in read_file(path, self._stream.record)]
            else:
                files[file] = before[file]
        self._remember(run, files)
        return (key for keys in files.values() for key in keys)

    def _remember(self, run: tuple[str, str, str], files: dict[Source, list[K]]) -> None:
        with self._lock:
            self._runs[run] = files
            self._runs.move_to_end(run)
            if len(self._runs) > MOST_RUNS:
                self._runs.popitem(last=False)


def _known_reply(prediction: PredictionBrief) -> tuple[str, ReplyKey]:
    return prediction.prediction_id, ReplyKey(prediction.key, prediction.sample)


class KnownOfRuns:
    """What runs have of replies and of verdicts."""

    def __init__(self) -> None:
        self._replies = Known(PREDICTION_BRIEFS, _known_reply)
        self._verdicts = Known(Stream(JUDGED.name, VerdictBrief), VerdictKey.of)

    def replies(self, journal: Journal, model: str, run_id: str) -> dict[str, ReplyKey]:
        """Which reply each prediction is, by its id."""
        return dict(self._replies.keys(journal, model, run_id))

    def verdicts(self, journal: Journal, model: str, run_id: str) -> set[VerdictKey]:
        """Every verdict."""
        return set(self._verdicts.keys(journal, model, run_id))


PATIENCE_S = 10.0
"""So long somebody who sends a batch waits for others who send some of the same model."""
MOST_REPLIES = 1_000_000
ELSEWHERE = "It is evaluated elsewhere, and its runs are sent here."
"""Why nobody here asks a model that no gateway of ours was seen to offer."""
R = TypeVar("R", Prediction, Judgement)


@dataclass(frozen=True)
class Receiver:
    """Where runs come in; what they have by now is kept in mind."""

    warehouse: Warehouse
    known: KnownOfRuns = field(default_factory=KnownOfRuns)

    @property
    def journal(self) -> Journal:
        return self.warehouse.journal

    def open_run(self, wanted: RunToOpen) -> OpenedRun:
        """Opens the run, unless it is open; refused if another one has its name."""
        run = wanted.run
        with self._alone(PREDICTIONS, run.model, run.run_id):
            if self.journal.exists(RUNS, run.model, run.run_id):
                if self._run(run.model, run.run_id) != run:
                    raise ConflictError("Another run of this model is here under the same id.")
                return OpenedRun(state="known")
            _check_run(self.journal, wanted)
            if wanted.sighting is not None:
                keep_sighting(self.journal, wanted.sighting)
            self.journal.write_whole(RUNS, run.model, run.run_id, records=[run])
        return OpenedRun(state="new")

    def take_predictions(
        self, run_id: str, model: str, predictions: Sequence[Prediction]
    ) -> Received:
        """Keeps those that are not here yet."""
        with self._alone(PREDICTIONS, model, run_id):
            run = self._run(model, run_id)
            _check_plan(run, predictions, "predictions")
            before = self.known.replies(self.journal, model, run_id)
            replies = dict(before)
            for place, one in enumerate(predictions):
                if replies.setdefault(one.prediction_id, _reply(one)) != _reply(one):
                    raise RefusedError(
                        f"predictions[{place}]: its prediction_id is that of another reply."
                    )
            new = _new(predictions, [one.prediction_id for one in predictions], before)
            return self._keep(PREDICTIONS, run, predictions, new)

    def take_judgements(self, run_id: str, model: str, judgements: Sequence[Judgement]) -> Received:
        """Keeps those that are not here yet; what they are about has to be here."""
        with self._alone(JUDGED, model, run_id):
            run = self._run(model, run_id)
            _check_plan(run, judgements, "judgements")
            replies = self.known.replies(self.journal, model, run_id)
            for place, one in enumerate(judgements):
                if replies.get(one.prediction_id) != _reply(one):
                    raise RefusedError(
                        f"judgements[{place}]: the run has no such prediction of this reply."
                    )
            before = self.known.verdicts(self.journal, model, run_id)
            new = _new(judgements, [VerdictKey.of(one) for one in judgements], before)
            return self._keep(JUDGED, run, judgements, new)

    def close(self, run_id: str, model: str) -> ClosedRun:
        """Puts the run's files together and shows it; more may come, and it is closed again."""
        run = self._run(model, run_id)
        for stream in (PREDICTIONS, JUDGED):
            with self._alone(stream, model, run_id):
                self.journal.compact(stream, model, run_id)
        self.warehouse.publish()
        return ClosedRun(
            planned=run.planned,
            predictions=len(self.known.replies(self.journal, model, run_id)),
            judgements=len(self.known.verdicts(self.journal, model, run_id)),
        )

    def _run(self, model: str, run_id: str) -> Run:
        if not self.journal.exists(RUNS, model, run_id):
            raise UnknownError("There is no such run of this model here: open it first.")
        return next(self.journal.read_file(RUNS, model, run_id))

    def _keep(
        self, stream: Stream[R], run: Run, received: Sequence[R], new: Sequence[R]
    ) -> Received:
        if new:
            name = f"posted-{now():%Y%m%dT%H%M%S.%f}-{token_hex(6)}"
            self.journal.write_whole(stream, run.model, run.run_id, name, records=new)
        return Received(received=len(received), new=len(new), known=len(received) - len(new))

    @contextmanager
    def _alone(self, stream: Stream[Any], model: str, run_id: str) -> Iterator[None]:
        """Nobody else writes to this model's runs meanwhile, and no launch here is busy with it."""
        self._refuse_at_work(model, run_id)
        with self.journal.claim_soon(stream, model, PATIENCE_S):
            self._refuse_at_work(model, run_id)
            yield

    def _refuse_at_work(self, model: str, run_id: str) -> None:
        if is_at_work(self.journal, model, run_id):
            raise AtWorkError("A launch here is at work on this model: try again later.")


def _reply(record: Prediction | Judgement) -> ReplyKey:
    return ReplyKey(ItemKey(record.suite, record.item_id), record.sample)


def _new(records: Sequence[R], keys: Sequence[K], before: Container[K]) -> list[R]:
    """Those that were not there before, each once."""
    first: dict[K, R] = {}
    for key, record in zip(keys, records, strict=True):
        first.setdefault(key, record)
    return [record for key, record in first.items() if key not in before]


def _check_plan(run: Run, records: Sequence[R], what: str) -> None:
    replies = Replies(run.plan, run.samples)
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
    """So that the model is known; what gateways here said of it is not for others to change."""
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
