"""Records, benchmarks and settings for the tests: whole by default, changed by keyword."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eval_pipeline.evaluation.budget import Forecast, RunBudget
from eval_pipeline.evaluation.requests import ModelClient
from eval_pipeline.evaluation.workers import StageProgress, WorkerPool
from eval_pipeline.gateways.chat import Asked, ChatProvider, ChatRequest
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.gateways.rate_limiter import RateLimiter
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records.coding import CodingTask, GradedCode, Step, TaskConfig, TestResult
from eval_pipeline.records.diagnosis import Diagnosis, Reclassification
from eval_pipeline.records.item import (
    PROTOCOL,
    BenchmarkVersion,
    ExamQuestion,
    Item,
    ItemKey,
    SuiteVersion,
)
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Attempt, Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark, keep

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
"""When everything happened that was not told when it happened."""


def a_question(item_id: str = "q1", **changes: object) -> ExamQuestion:
    """A text question of the suite `sample`, category Math, whose answer is 42."""
    return ExamQuestion.model_validate(
        {
            "suite": "sample",
            "id": item_id,
            "question": f"What is 6 times 7? ({item_id})",
            "image": None,
            "answer": "42",
            "answer_type": "exactMatch",
            "category": "Math",
            "rationale": "Counting.",
            "raw_subject": "Arithmetic",
            **changes,
        }
    )


def a_model(model_id: str = "demo/strong", **changes: object) -> Model:
    """A simulated model that reads text."""
    vendor, _, name = model_id.partition("/")
    return Model.model_validate(
        {
            "id": model_id,
            "gateway": "demo",
            "request_name": model_id,
            "vendor": vendor,
            "name": name,
            "display_name": f"The {name}",
            "simulated": True,
            **changes,
        }
    )


def a_run(
    run_id: str = "run-1",
    model: str = "demo/strong",
    plan: Iterable[tuple[str, str]] = (("sample", "q1"),),
    **changes: object,
) -> Run:
    """A full run; its benchmark version is that of `a_benchmark()`."""
    return Run.model_validate(
        {
            "run_id": run_id,
            "model": model,
            "experiment": "default",
            "benchmark_version": a_benchmark().version.benchmark_version,
            "plan": tuple(plan),
            "plan_filter": {},
            "scope": "full",
            "parameters": {"temperature": 0},
            "simulated": True,
            "opened_at": NOON,
            **changes,
        }
    )


def an_attempt(run_id: str = "run-1", model: str = "demo/strong") -> Attempt:
    """A launch that set out to evaluate the model."""
    about = {"run_id": run_id, "model": model, "experiment": "default", "began_at": NOON}
    return Attempt.model_validate({**about, "filtered": False, "repair": False})


def a_prediction(item_id: str = "q1", **changes: object) -> Prediction:
    """A right answer in `run-1`; its id names run, model, suite and item."""
    values: dict[str, object] = {
        "run_id": "run-1",
        "model": "demo/strong",
        "suite": "sample",
        "item_id": item_id,
        "outcome": "ok",
        "answer": "42",
        "attempts": 1,
        "request_hash": fingerprint(item_id),
        "finished_at": NOON,
        **changes,
    }
    named = (str(values[name]) for name in ("run_id", "model", "suite", "item_id"))
    return Prediction.model_validate({"prediction_id": " ".join(named), **values})


def a_judgement(prediction: Prediction, score: float | None = 1.0, **changes: object) -> Judgement:
    """The verdict of `demo/judge` on that prediction."""
    about = prediction.model_dump(
        include={"prediction_id", "run_id", "model", "suite", "item_id", "sample"}
    )
    return Judgement.model_validate(
        {
            **about,
            "judge": "demo/judge",
            "judge_version": "v1",
            "outcome": "ok" if score is not None else "judge_unparsable",
            "score": score,
            "reason": "Compared with the reference.",
            "attempts": 1,
            "finished_at": NOON,
            **changes,
        }
    )


def a_diagnosis(
    judgement: Judgement, classification: str | None = "MODEL_FAULT", **explained: object
) -> Diagnosis:
    """What `demo/judge` says of that failure; without a classification it could not tell."""
    explanation = {
        "failed_step": None,
        "error": "It adds one too many.",
        "classification": classification,
        "reasoning": "The sum begins at one. The reference begins at zero.",
        "model_snippet": "total = 1",
        "expected_snippet": "total = 0",
        **explained,
    }
    about = judgement.model_dump(
        include={"prediction_id", "run_id", "model", "suite", "item_id", "sample"}
        | {"judge", "judge_version"}
    )
    return Diagnosis.model_validate(
        {
            **about,
            "analyst": "demo/judge",
            "analyst_version": "a1",
            "outcome": "ok" if classification else "judge_unparsable",
            "explanation": explanation if classification else None,
            "reason": "" if classification else "The analyst's reply is not what it was asked for.",
            "finished_at": NOON,
        }
    )


def a_reclassification(judgement: Judgement, **changes: object) -> Reclassification:
    """A person who blames the task."""
    about = judgement.model_dump(include={"run_id", "model", "suite", "item_id"})
    said = {"classification": "AMBIGUOUS_TASK", "note": "Two readings.", "classified_at": NOON}
    return Reclassification.model_validate({**about, **said, **changes})


def graded_code(*steps: Step) -> GradedCode:
    """What a tests step of which one test failed came to, or other steps."""
    tests = (TestResult(name="adds", passed=True), TestResult(name="empty", passed=False))
    failed = Step(name="tests", status="failed", reason="empty", output="E  1 != 2", tests=tests)
    return GradedCode(
        steps=steps or (Step(name="filesystem", status="passed"), failed),
        toolchain="python-1",
        isolation="bwrap",
        verdict="oracle",
        grader_version="g1",
        answer_hash="a1",
    )


def a_task(item_id: str = "001-words/001-sum", **changes: object) -> CodingTask:
    """A coding task of the suite `coding` for the python toolchain."""
    values: dict[str, object] = {
        "suite": "coding",
        "id": item_id,
        "category": "words",
        "question": f"Write a function. ({item_id})",
        "toolchain": "python",
        "config": TaskConfig(),
        "answer": {"answer.py": "def total() -> int:\n    return 42\n"},
        "grader": {"grader/test_total.py": "def test_total() -> None: ...\n"},
        "wrong": {"other": {"answer.py": "def total() -> int:\n    return 41\n"}},
        "grader_version": "g1",
    }
    return CodingTask.model_validate({**values, **changes})


def write_task(
    root: Path, item_id: str, number: int, *, review: Sequence[str] = (), oracle: bool = True
) -> Path:
    """A task folder that asks for a number; its wrong answer is another one."""
    folder = root / item_id
    files = {
        "TASK.txt": f"Write answer.py with a function `number() -> int` that returns {number}.\n",
        "answer/answer.py": f"def number() -> int:\n    return {number}\n",
        "wrong/off-by-one/answer.py": f"def number() -> int:\n    return {number + 1}\n",
        "grader/test_answer.py": "from answer import number\n\n\n"
        f"def test_number() -> None:\n    assert number() == {number}\n\n\n"
        "def test_type() -> None:\n    assert isinstance(number(), int)\n",
        "eval.toml": f"review = {json.dumps(list(review))}\n"
        + ('[interface]\nanswer = ["number"]\n' if oracle else ""),
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    return folder


def a_benchmark(*questions: Item, loaded_at: datetime = NOON) -> Benchmark:
    """A benchmark of these questions; of `a_question()` if there are none."""
    questions = questions or (a_question(),)
    suites = tuple(
        _suite_version(name, [question for question in questions if question.suite == name])
        for name in dict.fromkeys(question.suite for question in questions)
    )
    return Benchmark(
        version=BenchmarkVersion(
            benchmark_version=fingerprint([suite.model_dump() for suite in suites]),
            suites=suites,
            answer_prompt_hash=fingerprint("answer"),
            judge_prompt_hash=fingerprint("judge"),
            protocol=PROTOCOL,
            loaded_at=loaded_at,
        ),
        items={ItemKey(question.suite, question.id): question for question in questions},
    )


def a_journal(
    folder: Path, *records: Run | Prediction | Judgement, benchmark: Benchmark | None = None
) -> Journal:
    """A journal in the folder with the benchmark and these records; called again, it adds more."""
    journal = Journal(folder / "journal")
    keep(benchmark or a_benchmark(), journal)
    name = f"{len(journal.snapshot()):04}"
    for model, run_id in dict.fromkeys((record.model, record.run_id) for record in records):
        of_run = [record for record in records if (record.model, record.run_id) == (model, run_id)]
        if runs := [record for record in of_run if isinstance(record, Run)]:
            journal.write_whole(RUNS, model, run_id, records=runs)
        if predictions := [record for record in of_run if isinstance(record, Prediction)]:
            journal.write_whole(PREDICTIONS, model, run_id, name, records=predictions)
        if judgements := [record for record in of_run if isinstance(record, Judgement)]:
            journal.write_whole(JUDGED, model, run_id, name, records=judgements)
    return journal


def a_warehouse(folder: Path, *predictions: Prediction) -> Warehouse:
    """A published one with a run in which these predictions (or q1's) were judged."""
    predictions = predictions or (a_prediction(),)
    journal = a_journal(folder, a_run(), *predictions, *map(a_judgement, predictions))
    warehouse = Warehouse(folder / "evals.duckdb", journal)
    warehouse.publish()
    return warehouse


def write_questions(folder: Path, questions: Sequence[ExamQuestion] | int) -> list[ExamQuestion]:
    """Writes these, or so many, as the file of the suite `sample`."""
    if isinstance(questions, int):
        questions = [a_question(f"q{number}") for number in range(questions)]
    lines = [f"{question.model_dump_json(exclude={'suite'})}\n" for question in questions]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "questions.jsonl").write_text("".join(lines))
    return list(questions)


def settings_in(
    folder: Path, *, questions: Sequence[ExamQuestion] = (), **changes: Any
) -> Settings:
    """Writes the demo's settings with the changes and three (or the) questions; loads them."""
    values: dict[str, object] = {
        "suites": [{"name": "sample", "path": "questions.jsonl"}],
        "gateways": [{"name": "demo", "kind": "demo"}],
        "selection": {"exclude_models": ["demo/judge"]},
        "judge": {"model": "demo/judge"},
        "requests": {"first_wait_s": 0, "longest_wait_s": 0},
    }
    for name, change in changes.items():
        match values.get(name), change:
            case dict() as present, dict():
                values[name] = {**present, **change}
            case _:
                values[name] = change
    write_questions(
        folder,
        questions or [a_question("q1"), a_question("q2"), a_question("q3", category="Physics")],
    )
    path = folder / "eval_pipeline.toml"
    path.write_text("".join(f"{name} = {_toml(value)}\n" for name, value in values.items()))
    return Settings.from_env({"EVALS_SETTINGS": str(path)})


def _suite_version(name: str, questions: list[Item]) -> SuiteVersion:
    dumped = (question.model_dump(mode="json") for question in questions)
    return SuiteVersion(
        suite=name,
        suite_version=fingerprint(*dumped),
        items=len(questions),
        kind=questions[0].kind,
    )


def _toml(value: object) -> str:
    match value:
        case Mapping():
            return "{" + ", ".join(f"{json.dumps(k)} = {_toml(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_toml, value)) + "]"
        case bool() | int() | float():
            return json.dumps(value)
        case _:
            return json.dumps(str(value))


def an_asking(
    provider: ChatProvider, policy: RetryPolicy, *, most: int = 100, prices: Prices | None = None
) -> ModelClient:
    return ModelClient(provider, policy, RateLimiter(most), Forecast(prices or Prices()))


def a_pool(account: RunBudget | None = None, *, num_workers: int = 100) -> WorkerPool:
    tally = StageProgress("demo/strong", "asked")
    return WorkerPool(
        tally, account or RunBudget(), num_workers=num_workers, stop_after_failures=100
    )


async def ask(provider: ChatProvider, request: ChatRequest, policy: RetryPolicy) -> Asked:
    """Asks on its own, without budget and stage."""
    return await an_asking(provider, policy).ask(request, a_pool())
