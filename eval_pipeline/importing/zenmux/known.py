"""What of a run is in the journal already, so that importing twice changes nothing."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from eval_pipeline.history import JUDGEMENT_BRIEFS, PREDICTION_BRIEFS
from eval_pipeline.journal import Journal
from eval_pipeline.records import Judgement, Prediction

_TICK = timedelta(microseconds=1)


@dataclass(frozen=True)
class KnownOfRun:
    """Its replies and verdicts, by what names them."""

    last: dict[str, tuple[datetime, bool]] = field(default_factory=dict)
    ids: set[str] = field(default_factory=set)
    judged: set[tuple[str, str, str]] = field(default_factory=set)
    scored: set[tuple[str, str, str]] = field(default_factory=set)

    @classmethod
    def of(cls, journal: Journal, model: str, run_id: str) -> "KnownOfRun":
        """All that the journal has of the run."""
        here = cls()
        for one in journal.read(PREDICTION_BRIEFS, model, run_id):
            here.ids.add(one.prediction_id)
            known = here.last.get(one.item_id)
            if known is None or known[0] <= one.finished_at:
                here.last[one.item_id] = (one.finished_at, one.outcome.is_result)
        for verdict in journal.read(JUDGEMENT_BRIEFS, model, run_id):
            key = (verdict.prediction_id, verdict.judge, verdict.judge_version)
            here.judged.add(key)
            if verdict.score is not None:
                here.scored.add(key)
        return here

    def lacks(self, prediction: Prediction) -> Prediction | None:
        """The prediction as it is to be kept, unless the reply has one here already."""
        if prediction.prediction_id in self.ids:
            return None
        moment, is_result = self.last.get(prediction.item_id, (None, False))
        if is_result:
            return None
        if moment is None or moment < prediction.finished_at:
            return prediction
        # Repaired there, in a file that still says when it was written at first.
        return prediction.model_copy(update={"finished_at": moment + _TICK})

    def lacks_verdict(self, one: Judgement) -> bool:
        """Whether nobody has said so much yet."""
        key = (one.prediction_id, one.judge, one.judge_version)
        return key not in self.judged or (one.score is not None and key not in self.scored)
