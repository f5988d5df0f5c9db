"""A folder, a simulated gateway and both stages over them."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch, predict
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import JUDGED, PREDICTIONS, Journal
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current
from eval_pipeline_tests.builders import a_model, settings_in

STRONG, WEAK = a_model("demo/strong"), a_model("demo/weak", system_role=False, temperature=False)
JUDGE = a_model("demo/judge")


def latest(predictions: Iterable[Prediction]) -> dict[ItemKey, Prediction]:
    """The last word on each item."""
    found: dict[ItemKey, Prediction] = {}
    for prediction in predictions:
        known = found.get(prediction.key)
        if known is None or known.finished_at <= prediction.finished_at:
            found[prediction.key] = prediction
    return found


class Stand:
    """A folder, a simulated gateway and the settings that lead to it."""

    def __init__(self, folder: Path, gateway: DemoGateway, **changes: Any) -> None:
        self.gateway = gateway
        self.settings = settings_in(
            folder,
            gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
            **changes,
        )
        self.journal = Journal(self.settings.journal)

    def predict(
        self, *models: Model, launch: Launch | None = None, settings: Settings | None = None
    ) -> list[StageProgress]:
        chosen = settings or self.settings
        return run_async(
            predict(
                models,
                current(self.journal, chosen),
                launch or Launch("run-1"),
                settings=chosen,
                journal=self.journal,
            )
        )

    def judge(
        self,
        *models: str,
        launch: Launch | None = None,
        by: Model = JUDGE,
        this_judge: bool = False,
    ) -> list[StageProgress]:
        return run_async(
            judge(
                models,
                [by],
                launch or Launch("judging"),
                settings=self.settings,
                journal=self.journal,
                this_judge=this_judge,
            )
        )

    def predictions(self, model: str = "demo/strong") -> dict[str, Prediction]:
        found = latest(self.journal.read(PREDICTIONS, model))
        return {key.item_id: prediction for key, prediction in sorted(found.items())}

    def judgements(self, model: str = "demo/strong") -> list[Judgement]:
        return list(self.journal.read(JUDGED, model))


def outcomes(tallies: Sequence[StageProgress]) -> list[dict[Outcome, int]]:
    return [dict(tally.outcomes) for tally in tallies]
