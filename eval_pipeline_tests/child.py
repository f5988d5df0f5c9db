"""Both stages for one model in a process of its own, to be killed: python -m …child MODEL RUN."""

import logging
import sys

from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch, predict
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.records.run import Mode
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current
from eval_pipeline_tests.builders import a_model


def main(model: str, run_id: str) -> None:
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    settings = Settings.from_env()
    journal, launch = open_journal(settings), Launch(run_id, Mode.FIX)
    benchmark, judged_by = current(journal, settings), a_model("demo/judge")
    asked = a_model(model)
    run_async(predict([asked], benchmark, launch, settings=settings, journal=journal))
    run_async(judge([model], [judged_by], launch, settings=settings, journal=journal))


if __name__ == "__main__":
    main(*sys.argv[1:])
