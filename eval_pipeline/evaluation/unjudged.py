"""Which replies of a run a judge still has to judge, as the journal tells it."""

from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.state import PREDICTION_BRIEFS, JudgementBrief, Replies
from eval_pipeline.journal import JUDGED, PREDICTIONS, FileCompactedError, Journal, Stream
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Prediction
from eval_pipeline.records.run import Mode, Run

By = tuple[str, str]
"""A judge and its version."""


class _VerdictBrief(JudgementBrief):
    """Of a judgement, also what tells whether it is to be given again."""

    launch: str | None = None


_VERDICT_BRIEFS = Stream(JUDGED.name, _VerdictBrief)


@dataclass(frozen=True)
class Settled:
    """What need not be judged now, and by whom else a run was judged as a whole."""

    by: Mapping[By, Set[str]]
    whole: list[By]

    def pending(self, results: Set[str], by: By) -> Set[str]:
        """What is left for this judge."""
        return set() if self.whole else results - self.by.get(by, set())


def results_of(journal: Journal, run: Run) -> Mapping[str, str]:
    """Ids of the predictions that say something about the model, and are the last to do so.

    With each of them, the suite of its item.
    """
    while True:
        try:
            return _last_results(journal, run)
        except FileCompactedError:  # compacted meanwhile: now in another file
            continue


def _last_results(journal: Journal, run: Run) -> Mapping[str, str]:
    """In one pass, for the model may still be asked: read again, the journal may have grown."""
    replies = Replies(run.plan, run.samples)
    moments = array("d", [0.0]) * len(replies)
    ids: list[str | None] = [None] * len(replies)
    for brief in journal.read(PREDICTION_BRIEFS, run.model, run.run_id):
        reply, moment = replies.find(brief.key, brief.sample), brief.finished_at.timestamp()
        if reply is not None and moments[reply] <= moment:
            moments[reply] = moment
            ids[reply] = brief.prediction_id if brief.outcome.is_result else None
    found = ((one, run.plan[place % len(run.plan)]) for place, one in enumerate(ids))
    return {one: key.suite for one, key in found if one is not None}


def predictions_of(journal: Journal, run: Run, ids: Set[str]) -> Iterator[Prediction]:
    """Reads them as they are needed, however long judging takes."""
    left = set(ids)
    while left:
        try:
            for one in journal.read(PREDICTIONS, run.model, run.run_id):
                if one.prediction_id in left:
                    left.discard(one.prediction_id)
                    yield one
        except FileCompactedError:  # compacted meanwhile: now in another file
            continue
        return


def settled_of(
    journal: Journal, run: Run, results: Set[str], launch: Launch, *, by_any: bool
) -> Settled:
    """What each judge need not judge now; `by_any`, one judge's whole work settles it for others.

    Not by parts: what several did in part, the present one does as a whole.
    """
    settled: dict[By, set[str]] = defaultdict(set)
    scored: dict[By, set[str]] = defaultdict(set)
    for verdict in journal.read(_VERDICT_BRIEFS, run.model, run.run_id):
        if not _stands(verdict, launch):
            continue
        by = (verdict.judge, verdict.judge_version)
        settled[by].add(verdict.prediction_id)
        if verdict.score is not None or launch.mode is Mode.RESUME:
            scored[by].add(verdict.prediction_id)
    by_any = by_any and launch.mode is not Mode.FRESH and bool(results)
    return Settled(settled, [by for by, done in scored.items() if by_any and done >= results])


def _stands(verdict: _VerdictBrief, launch: Launch) -> bool:
    """Whether it need not be given again in this mode."""
    if launch.mode is Mode.RESUME:
        return True
    if launch.mode is Mode.FRESH and verdict.launch != launch.origin:
        return False
    return verdict.score is not None or verdict.outcome is Outcome.UNDECIDED
