"""Results for the web to show: several models, runs and versions, and an attack in every text."""

import base64
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from eval_pipeline.journal import ATTEMPTS, DIAGNOSES, RECLASSIFIED, SIGHTINGS, VERSIONS, Journal
from eval_pipeline.records.coding import Step, TestResult
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_diagnosis,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_reclassification,
    a_run,
    a_task,
    an_attempt,
    graded_code,
    settings_in,
)

PIXEL = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
        "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
    )
).decode()


def attack(where: str) -> str:
    """Text that would do something wherever it is taken for more than text."""
    act = f"window.owned='{where}'"
    return (
        f"{where}</pre></code></script><script>{act}</script>"
        f'"\'><img src=x onerror="{act}"><svg onload="{act}"><style>*{{display:none}}</style>'
        f"\n[{where} link](javascript:{act}) ![{where}](http://attacker.invalid/x.png)"
        f" <a href='data:text/html,<script>{act}</script>'>x</a> $\\href{{javascript:{act}}}{{y}}$"
    )


QUESTIONS = [
    a_question("q1", question=attack("question"), rationale=attack("rationale")),
    a_question("q2", image=f"data:image/png;base64,{PIXEL}"),
    a_question("q3", category=attack("category")),
    a_question("../q4?&#/%2e", answer=attack("answer"), category="Physics"),
    a_question("q" * 300, category="Physics"),
]
TASK = a_task(
    question=attack("task"),
    gaps=attack("gaps"),
    answer={"answer.py": f"# {attack('reference')}\nA = 1\n"},
    grader={"grader/test_total.py": attack("grader")},
)
BENCHMARK = a_benchmark(*QUESTIONS, TASK)
OLD = a_benchmark(*QUESTIONS[:2], loaded_at=NOON - timedelta(days=90))
PLAN = list(BENCHMARK.items)
STRONG, WEAK, OTHER = "demo/strong", "demo/weak", "acme/best:fast"
FIRST, SECOND, EARLIER, BROKEN = "11111111-a", "22222222-b", "00000000-c", "33333333-d"
CODE = f"# Files\n\n## answer.py\n\n```python\nA = 2  # {attack('file')}\n```\n"


def opened(run_id: str, model: str, day: int = 0, **changes: object) -> Run:
    """A run of everything."""
    version = BENCHMARK.version.benchmark_version
    about = {"benchmark_version": version, "opened_at": NOON + timedelta(days=day)}
    return a_run(run_id, model, **{"plan": PLAN, **about, **changes})  # type: ignore[arg-type]


def replies(run: Run) -> list[Prediction]:
    """Full of attacks, and ever dearer."""
    about = {
        "run_id": run.run_id,
        "model": run.model,
        "reasoning": attack("reasoning"),
        "usage": Usage(input_tokens=10, output_tokens=20, cost_usd=0.01, cost_estimated=False),
        "latency_s": 1.5,
        "finish_reason": attack("finish reason"),
        "served_by": attack("served by"),
        "generation_id": attack("generation id"),
    }
    return [
        a_prediction(
            key.item_id,
            suite=key.suite,
            answer=CODE if key.suite == "coding" else f"Reply {attack('reply')}",
            **about,
        )
        for key in run.plan
    ]


def verdict(prediction: Prediction, score: float) -> Judgement:
    """With the steps of code, if it is code."""
    said = {
        "reason": attack("reason"),
        "extracted_answer": attack("extracted"),
        "raw_reply": attack("raw reply"),
        "confidence": 0.8,
    }
    if prediction.suite == "coding":
        test = TestResult(name=attack("test"), passed=score > 0, message=attack("message"))
        status = "passed" if score else "failed"
        step = Step(
            name="tests",
            status=status,
            reason=attack("step"),
            output=attack("output"),
            tests=(test,),
        )
        graded = graded_code(step).model_copy(update={"backend": attack("backend")})
        said = {**said, "code": graded, "graded_by": "steps"}
    return a_judgement(prediction, score, **said)


def records() -> Iterator[Run | Prediction | Judgement]:
    """Three models on the leaderboard, one of them twice, and a run that lacks something."""
    right = {STRONG: 6, WEAK: 2, OTHER: 4}
    for model, number in right.items():
        yield from judged(opened(FIRST, model), number)
    yield from judged(opened(SECOND, STRONG, day=30), 4)
    yield from judged(opened(FIRST, WEAK, experiment="no_guidelines"), 3, run_id="44444444-e")
    broken = opened(BROKEN, WEAK, day=31)
    first, second, third, *_ = replies(broken)
    lost = {"outcome": "timeout", "answer": None, "error": attack("error")}
    cut = {"outcome": "truncated", "finish_reason": "length"}
    yield from (broken, first, second.model_copy(update=lost), third.model_copy(update=cut))
    yield verdict(first, 0.0)
    # Another judge is of another opinion.
    yield verdict(first, 1.0).model_copy(update={"judge": "other/judge"})


def judged(
    run: Run, right: int, run_id: str | None = None
) -> Iterator[Run | Prediction | Judgement]:
    """The first so many are right."""
    run = run if run_id is None else run.model_copy(update={"run_id": run_id})
    yield run
    for number, prediction in enumerate(replies(run)):
        yield prediction
        yield verdict(prediction, float(number < right))


def old_records() -> Iterator[Run | Prediction | Judgement]:
    """A run of a benchmark version that is no longer the published one."""
    run = a_run(
        EARLIER,
        WEAK,
        list(OLD.items),
        benchmark_version=OLD.version.benchmark_version,
        opened_at=NOON - timedelta(days=90),
    )
    yield from judged(run, 1)


def a_viewed_project(folder: Path, **changes: object) -> Settings:
    """All of it, published."""
    settings = settings_in(folder, questions=QUESTIONS[:3], **changes)
    a_journal(settings.data, *old_records(), benchmark=OLD)
    journal = a_journal(settings.data, *records(), benchmark=BENCHMARK)
    _mint(journal)
    seen = [
        Sighting(
            model=a_model(
                name, provider=name.partition(":")[2] or None, display_name=attack("name")
            ),
            selected=True,
            seen_at=NOON,
        )
        for name in (STRONG, WEAK, OTHER)
    ]
    journal.write_whole(SIGHTINGS, "1", records=seen)
    journal.write_whole(ATTEMPTS, WEAK, BROKEN, records=[an_attempt(BROKEN, WEAK)])
    _explain(journal)
    Warehouse(settings.database, journal).publish()
    _report(settings)
    return settings


def _mint(journal: Journal) -> None:
    named = [
        (OLD.version, "2024.1"),
        (BENCHMARK.version, "2025.1"),
    ]
    minted = [one.model_copy(update={"minted_as": name}) for one, name in named]
    journal.write_whole(VERSIONS, "minted", records=minted)


def _explain(journal: Journal) -> None:
    wrong = [one for one in judged(opened(FIRST, WEAK), 2) if isinstance(one, Judgement)][3]
    explained = {
        name: attack(name) for name in ("error", "reasoning", "model_snippet", "expected_snippet")
    }
    said = a_diagnosis(wrong, **explained)
    journal.write_whole(DIAGNOSES, said.model, said.run_id, "1", records=[said])
    differs = a_reclassification(wrong, note=attack("note"))
    journal.write_whole(RECLASSIFIED, said.model, said.run_id, "1", records=[differs])


def _report(settings: Settings) -> None:
    folder = settings.reports / "demo" / "weak"
    folder.mkdir(parents=True)
    text = f"# Report\n\n- Run: {FIRST}\n\n{attack('report')}\n"
    (folder / "11111111_2025-01-01.md").write_text(text)
