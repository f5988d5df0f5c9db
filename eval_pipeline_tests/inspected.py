"""A run in which everything happened that a log of Inspect's can tell."""

from pathlib import Path

from eval_pipeline.journal import SIGHTINGS
from eval_pipeline.records.coding import Step, TestResult
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.boards import PICTURE
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    a_task,
    graded_code,
    settings_in,
)

TASK = "001-words/001-sum"
ITEMS = (
    a_question("right"),
    a_question("wrong", image=f"{PICTURE}AAAA"),
    a_question("outage"),
    a_question("unasked"),
    a_question("unjudged"),
    a_question("../../evil\x07"),
    a_task(TASK),
)
USED = Usage(
    input_tokens=100, output_tokens=20, reasoning_tokens=5, cached_tokens=30, cost_usd=0.25
)


def an_inspected_project(folder: Path, *, finished: bool = False) -> Path:
    """Two samples of each item by demo/strong, of which the second is always right."""
    settings = settings_in(folder)
    run = a_run(
        "aaaa-1", plan=[(one.suite, one.id) for one in ITEMS], samples=2,
        benchmark_version=a_benchmark(*ITEMS).version.benchmark_version,
    )  # fmt: skip
    last = [_reply("unasked", answer=None, outcome="timeout")] if finished else []
    records: list[Run | Prediction | Judgement] = [run, *_predictions(), *last, *_judgements()]
    journal = a_journal(settings.data, *records, benchmark=a_benchmark(*ITEMS))
    seen = [Sighting(model=a_model("demo/strong"), selected=True, seen_at=NOON)]
    journal.write_whole(SIGHTINGS, "20250101T120000.0", records=seen)
    Warehouse(settings.database, journal).publish()
    return folder


def _reply(item_id: str, sample: int = 0, **changes: object) -> Prediction:
    about = {"run_id": "aaaa-1", "sample": sample, "usage": USED, "latency_s": 2.0}
    name = {"prediction_id": f"p {item_id} {sample}"}
    return a_prediction(item_id, **{**about, **name, **changes})


FIRST = {
    "right": _reply("right", reasoning="Six times seven."),
    "wrong": _reply("wrong", answer="41"),
    "outage": _reply(
        "outage", answer=None, outcome="rate_limited", error="HTTP 429", usage=Usage()
    ),
    "unjudged": _reply("unjudged"),
    "../../evil\x07": _reply("../../evil\x07"),
    TASK: _reply(TASK, suite="coding", answer="# Files"),
}


def _predictions() -> list[Prediction]:
    second = [_reply(one.id, 1, suite=one.suite) for one in ITEMS]
    return [*FIRST.values(), *second]


def _judgements() -> list[Judgement]:
    tests = (TestResult(name="adds", passed=False, message="1 != 2"),)
    failed = Step(name="tests", status="failed", reason="adds", seconds=1.5, tests=tests)
    code = graded_code(Step(name="filesystem", status="passed"), failed)
    first = [
        a_judgement(FIRST["right"], 1.0, extracted_answer="42", confidence=0.9),
        a_judgement(FIRST["wrong"], 0.0, extracted_answer="41"),
        a_judgement(FIRST["unjudged"], None, reason="The judge's reply is no verdict."),
        a_judgement(FIRST["../../evil\x07"], 1.0),
        a_judgement(FIRST[TASK], 0.0, graded_by="steps", reason="tests: adds", code=code),
    ]
    second = [a_judgement(one) for one in _predictions() if one.sample == 1]
    return [*first, *second]
