"""The asking phase alone: `predict()` in a process of its own, started in a project."""

import json
import sys
from dataclasses import asdict

from bench.measuring import Stopwatch, Taken
from eval_pipeline.evaluation.catalog import look_up
from eval_pipeline.evaluation.predict import Launch, predict
from eval_pipeline.journal import Journal
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current


def ask(models: list[str]) -> Taken:
    """Asks these models everything; what is measured begins with the first of it."""
    settings = Settings.from_env()
    journal = Journal(settings.journal)
    benchmark, known = current(journal, settings), look_up(journal, models)
    watch = Stopwatch()
    run_async(predict(known, benchmark, Launch("bench"), settings=settings, journal=journal))
    return watch.taken()


if __name__ == "__main__":
    print(json.dumps(asdict(ask(sys.argv[1:]))))
