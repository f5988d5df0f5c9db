"""What a run has by now, so that nothing is kept twice: each file of it is read once."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from contextlib import suppress
from threading import Lock
from typing import Generic, NamedTuple, TypeVar

from pydantic import AwareDatetime, ConfigDict

from eval_pipeline.history import PREDICTION_BRIEFS, PredictionBrief, ReplyKey
from eval_pipeline.journal import JUDGED, FileCompactedError, Journal, Stream
from eval_pipeline.journal.files import Source, read_file, source
from eval_pipeline.record import Record
from eval_pipeline.records import Judgement

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


def _reply(prediction: PredictionBrief) -> tuple[str, ReplyKey]:
    return prediction.prediction_id, ReplyKey(prediction.key, prediction.sample)


class KnownOfRuns:
    """What runs have of replies and of verdicts."""

    def __init__(self) -> None:
        self._replies = Known(PREDICTION_BRIEFS, _reply)
        self._verdicts = Known(Stream(JUDGED.name, VerdictBrief), VerdictKey.of)

    def replies(self, journal: Journal, model: str, run_id: str) -> dict[str, ReplyKey]:
        """Which reply each prediction is, by its id."""
        return dict(self._replies.keys(journal, model, run_id))

    def verdicts(self, journal: Journal, model: str, run_id: str) -> set[VerdictKey]:
        """Every verdict."""
        return set(self._verdicts.keys(journal, model, run_id))
