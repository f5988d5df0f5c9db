"""Progress of active runs, read from the journal: the file of results has them when they land."""

import math
import time
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from threading import Lock

import orjson

from eval_pipeline.evaluation.state import (
    JUDGEMENT_BRIEFS,
    PAST_RUNS,
    PREDICTION_BRIEFS,
    JudgementBrief,
    PastRun,
    PredictionBrief,
)
from eval_pipeline.journal import ATTEMPTS, JUDGED, PREDICTIONS, Journal, Stream
from eval_pipeline.journal.files import JSONL, FileCompactedError, read_file
from eval_pipeline.journal.locks import running_run_ids

LOOK_EVERY_S = 1.0
Brief = PredictionBrief | JudgementBrief
Briefs = Stream[PredictionBrief] | Stream[JudgementBrief]


@dataclass(frozen=True)
class Progress:
    """The progress of a run."""

    run_id: str
    model: str
    experiment: str
    simulated: bool
    opened_at: datetime
    planned: int
    answered: int
    failed: int
    judged: int
    at_work: bool


@dataclass
class _Tail:
    """The part of a file that was read, and by reply whether its last line is a result."""

    offset: int = 0
    last: dict[Hashable, bool] = field(default_factory=dict)

    def note(self, brief: Brief) -> None:
        match brief:
            case PredictionBrief():
                self.last[brief.key, brief.sample] = brief.outcome.is_result
            case JudgementBrief():
                self.last[brief.prediction_id] = brief.score is not None


class JournalTail:
    """Counts new lines of the journal, reading none twice, for all readers."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._tails: dict[Path, _Tail] = {}
        self._lock = Lock()
        self._known: list[str] = []
        self._looked_at = -math.inf

    def is_busy(self) -> bool:
        """Return whether any launch is active."""
        return bool(self._launches())

    def at_work(self) -> list[Progress]:
        """Return the runs that a living process works on."""
        runs = {
            (run.run_id, run.model): run for one in self._launches() for run in self._runs_of(one)
        }
        return [self._progress(run, at_work=True) for run in runs.values()]

    def of(self, run_id: str, model: str) -> Progress | None:
        """Return the progress of a run; None if there is no such run."""
        run = next((one for one in self._past(model) if one.run_id == run_id), None)
        if run is None:
            return None
        working = {(one.run_id, one.model) for one in self.at_work()}
        return self._progress(run, at_work=(run_id, model) in working)

    def _launches(self) -> list[str]:
        """Return active launches, looked up once a second: that takes their locks for a moment."""
        if time.monotonic() > self._looked_at + LOOK_EVERY_S:
            self._known = running_run_ids(self._journal.root)
            self._looked_at = time.monotonic()
        return self._known

    def _runs_of(self, launch: str) -> Iterator[PastRun]:
        """Yield the launch's own runs, or the last written run of each of its models."""
        for model in self._journal.parts(ATTEMPTS):
            if not self._journal.exists(ATTEMPTS, model, launch):
                continue
            runs = self._past(model)
            own = next((run for run in runs if run.run_id == launch), None)
            if found := own or max(runs, key=self._written_at, default=None):
                yield found

    def _past(self, model: str) -> list[PastRun]:
        try:
            return list(self._journal.read(PAST_RUNS, model))
        except FileCompactedError:  # just deleted
            return []

    def _written_at(self, run: PastRun) -> float:
        files = [
            path
            for stream in (PREDICTIONS, JUDGED)
            for path in self._journal.files(stream, run.model, run.run_id)
        ]
        return max((path.stat().st_mtime for path in files if path.exists()), default=0.0)

    def _progress(self, run: PastRun, *, at_work: bool) -> Progress:
        with self._lock:
            answers = self._last_results(PREDICTION_BRIEFS, run)
            verdicts = self._last_results(JUDGEMENT_BRIEFS, run)
        items = len(orjson.loads(run.plan_text)) if run.plan_text else len(run.plan)
        return Progress(
            run.run_id,
            run.model,
            run.experiment,
            run.simulated,
            run.opened_at.replace(tzinfo=None),
            planned=items * run.samples,
            answered=sum(answers),
            failed=len(answers) - sum(answers),
            judged=sum(verdicts),
            at_work=at_work,
        )

    def _last_results(self, stream: Briefs, run: PastRun) -> list[bool]:
        last: dict[Hashable, bool] = {}
        for path in self._journal.files(stream, run.model, run.run_id):
            tail = self._tails.setdefault(path, _Tail())
            try:
                self._read_on(path, tail, stream.record)
            except (FileCompactedError, FileNotFoundError):  # packed meanwhile, with the same lines
                self._tails.pop(path)
            last |= tail.last
        return list(last.values())

    def _read_on(self, path: Path, tail: _Tail, record: type[Brief]) -> None:
        if path.suffix != JSONL:
            if not tail.offset:  # written as a whole, and never again
                for brief in read_file(path, record):
                    tail.note(brief)
                tail.offset = 1
            return
        with path.open("rb") as file:
            file.seek(tail.offset)
            for line in file:
                if line.endswith(b"\n"):
                    tail.note(record.model_validate_json(line))
                    tail.offset += len(line)
