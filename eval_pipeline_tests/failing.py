"""A journal of runs in which things went wrong, for the commands that tell why."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from eval_pipeline.journal import DIAGNOSES, SIGHTINGS
from eval_pipeline.records.coding import Step
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_diagnosis,
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

QUESTIONS = [a_question("q1"), a_question("q2"), a_question("q3", category="Physics")]
TASK, FAULTY = a_task(), a_task("001-words/002-sort", gaps="The order of equal words is not told.")
EXAM = a_benchmark(*QUESTIONS, TASK, FAULTY)
PLAN = list(EXAM.items)
ESCAPE = "\x1b"
LINT = Step(name="lint", status="failed", reason="Rules are broken", output="a.py:1:8: F401 unused")
REPLY = "# Files\n\n## answer.py\n\n```python\nA = 1\n```\n"


def opened(run_id: str, model: str, hour: int = 0, **changes: object) -> Run:
    version, at = EXAM.version.benchmark_version, NOON + timedelta(hours=hour)
    return a_run(run_id, model, PLAN, benchmark_version=version, opened_at=at, **changes)


def replies(run: Run, **changes: object) -> list[Prediction]:
    """A reply to each item of the plan."""
    about = {"run_id": run.run_id, "model": run.model, **changes}
    return [
        a_prediction(key.item_id, suite=key.suite, answer=REPLY, **about)
        if key.suite == "coding"
        else a_prediction(key.item_id, suite=key.suite, **about)
        for key in run.plan
    ]


def records() -> Iterator[Run | Prediction | Judgement]:
    """One that is right, of each way to go wrong one or two, and a model that is always right."""
    run = opened("11111111-a", "demo/strong")
    right, wrong, outage, code, unjudged = replies(run)
    lost = {"outcome": "timeout", "answer": None, "error": f"{ESCAPE}[31mToo late [bold]"}
    yield from (run, right, wrong, code, unjudged, outage.model_copy(update=lost))
    yield a_judgement(right)
    yield a_judgement(wrong, 0.0, extracted_answer="43", reason=f"43 {ESCAPE}[1m is not 42.")
    graded = {"code": graded_code(LINT), "graded_by": "steps"}
    yield a_judgement(code, 0.0, reason="lint: Rules are broken", **graded)
    yield a_judgement(unjudged, None, reason="No JSON.")
    # Another judge has seen less, and so does not stand for the run.
    yield a_judgement(right, 0.0, judge="other/judge", reason="I do not like it.")
    perfect = opened("11111111-a", "demo/perfect")
    yield perfect
    yield from replies(perfect)
    yield from map(a_judgement, replies(perfect))


def a_failed_exam(folder: Path) -> Path:
    """A project with these runs; of its two wrong replies one was analysed."""
    settings = settings_in(folder, questions=QUESTIONS)
    journal = a_journal(settings.data, *records(), benchmark=EXAM)
    seen = [Sighting(model=a_model("demo/strong"), selected=True, seen_at=NOON)]
    journal.write_whole(SIGHTINGS, "1", records=seen)
    _, wrong, _, code, _ = replies(opened("11111111-a", "demo/strong"))
    said = a_diagnosis(a_judgement(wrong, 0.0), error="It says 43.")
    # What is said of a verdict of another version does not stand.
    other = a_diagnosis(a_judgement(code, 0.0, judge_version="v0"))
    journal.write_whole(DIAGNOSES, said.model, said.run_id, "1", records=[said, other])
    return folder
