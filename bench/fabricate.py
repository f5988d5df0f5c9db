"""Finished work that nobody did: journals of a size that would take hours to ask for.

Run in a project: `python -m bench.fabricate answers MODEL COUNT` fills the model's open run,
`python -m bench.fabricate judged MODEL…` gives each model a run that is answered and judged.
"""

import sys
from collections.abc import Iterator, Sequence

from eval_pipeline.benchmark import Benchmark, current
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records import (
    ItemKey,
    Judgement,
    Outcome,
    PlanFilter,
    Prediction,
    Run,
    Scope,
    Usage,
    fingerprint,
    now,
)
from eval_pipeline.settings import Settings

_USAGE = Usage(input_tokens=120, output_tokens=60, cost_usd=3.6e-5)
_THOUGHTS = "First what is given, then what is asked, then how one leads to the other. " * 8


def fill_run(journal: Journal, model: str, count: int) -> None:
    """Answers the first items of the plan of the model's only run."""
    (run,) = journal.read(RUNS, model)
    predictions = _predictions(run, run.plan[:count])
    journal.write_whole(PREDICTIONS, model, run.run_id, "fabricated", records=predictions)


def add_judged_run(journal: Journal, benchmark: Benchmark, model: str) -> None:
    """A run over everything, with an answer and a verdict for each item."""
    run = Run(
        run_id=f"fabricated-{fingerprint(model)}",
        model=model,
        experiment="default",
        benchmark_version=benchmark.version.benchmark_version,
        plan=tuple(benchmark.items),
        plan_filter=PlanFilter(),
        scope=Scope.FULL,
        parameters={},
        simulated=True,
        opened_at=now(),
    )
    journal.write_whole(RUNS, model, run.run_id, records=[run])
    name, answers = "fabricated", _predictions(run, run.plan)
    journal.write_whole(PREDICTIONS, model, run.run_id, name, records=answers)
    verdicts = map(_judgement, _predictions(run, run.plan))
    journal.write_whole(JUDGED, model, run.run_id, name, records=verdicts)


def _predictions(run: Run, plan: Sequence[ItemKey]) -> Iterator[Prediction]:
    finished_at = now()
    for key in plan:
        yield Prediction(
            prediction_id=fingerprint(run.run_id, key.suite, key.item_id),
            run_id=run.run_id,
            model=run.model,
            suite=key.suite,
            item_id=key.item_id,
            outcome=Outcome.OK,
            answer=f"{key.item_id}: {_THOUGHTS} Answer: 42",
            reasoning=_THOUGHTS,
            finish_reason="stop",
            usage=_USAGE,
            latency_s=0.2,
            first_token_s=0.1,
            attempts=1,
            request_hash=fingerprint(key.item_id),
            finished_at=finished_at,
        )


def _judgement(prediction: Prediction) -> Judgement:
    return Judgement(
        prediction_id=prediction.prediction_id,
        run_id=prediction.run_id,
        model=prediction.model,
        suite=prediction.suite,
        item_id=prediction.item_id,
        judge="bench/judge",
        judge_version="fabricated",
        outcome=Outcome.OK,
        score=float(prediction.item_id[-1] in "02468"),
        reason="Compared with the reference.",
        extracted_answer="42",
        confidence=0.8,
        raw_reply=_THOUGHTS,
        usage=_USAGE,
        latency_s=0.2,
        attempts=1,
        finished_at=prediction.finished_at,
    )


def _main(what: str, *rest: str) -> None:
    settings = Settings.from_env()
    journal = Journal(settings.journal)
    if what == "answers":
        model, count = rest
        fill_run(journal, model, int(count))
    else:
        benchmark = current(journal, settings)
        for model in rest:
            add_judged_run(journal, benchmark, model)


if __name__ == "__main__":
    _main(*sys.argv[1:])
