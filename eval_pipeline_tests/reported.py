"""Runs, failures and reports on them for the tests: rows as the queries give them."""

from datetime import datetime
from pathlib import Path

from markdown_it import MarkdownIt

from eval_pipeline.analysis.patterns import Kind, Pattern
from eval_pipeline.analysis.report.data import ReportData
from eval_pipeline.analysis.report.earlier import EarlierRun
from eval_pipeline.analysis.report.write import write_report
from eval_pipeline.results.runs import Row
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import NOON, settings_in

RUN_ID = "3f2a1b9c-0000-4000-8000-000000000001"
HEADINGS = [
    "Metadata",
    "Failures by step",
    "Classification",
    "Failures",
    "Infrastructure",
    "Patterns",
    "Recommendations",
    "Actions taken",
    "Net impact",
]


def a_run_row(**changes: object) -> Row:
    """A run of 42 judged replies, 17 of them right."""
    return {
        "run_id": RUN_ID,
        "model": "demo/strong",
        "experiment": "default",
        "simulated": True,
        "scope": "full",
        "benchmark_version": "b1",
        "version_name": None,
        "opened_at": NOON.replace(tzinfo=None),
        "items": 42,
        "samples": 1,
        "planned": 42,
        "judge": "demo/judge",
        "judge_version": "v1",
        "judged": 42,
        "correct": 17.0,
        "accuracy": 17 / 42,
        "accuracy_low": 0.270,
        "accuracy_high": 0.555,
        **changes,
    }


def a_failure(item_id: str = "q1", **changes: object) -> Row:
    """A wrong answer that the analyst found to be the model's fault."""
    return {
        "run_id": RUN_ID,
        "model": "demo/strong",
        "went": "wrong",
        "suite": "sample",
        "category": "Math",
        "item_id": item_id,
        "sample": 0,
        "samples": 1,
        "outcome": "ok",
        "judge_outcome": "ok",
        "score": 0.0,
        "failed_step": None,
        "extracted_answer": "41",
        "reason": "It is not 42.",
        "error": "Answered 41 instead of 42",
        "classification": "MODEL_FAULT",
        "analyst_classification": "MODEL_FAULT",
        "overridden": False,
        "override_note": None,
        "reasoning": "The question is clear. The sum is wrong.",
        "model_snippet": "6 * 7 = 41",
        "expected_snippet": "42",
        "gap": None,
        "analyst": "demo/judge",
        "analyst_simulated": True,
        "unexplained_because": "",
        **changes,
    }


def in_vain(item_id: str, **changes: object) -> Row:
    """A reply that never came."""
    nothing = dict.fromkeys(
        ("classification", "analyst_classification", "reasoning", "analyst", "score", "reason")
    )
    about = {"went": "no answer", "outcome": "timeout", "judge_outcome": None, "error": "Too slow"}
    return a_failure(item_id, **{**nothing, **about, **changes})


def a_pattern(*items: str, **changes: str) -> Pattern:
    """Items that failed in the same way."""
    told = {"subject": "Off by one", "sentence": f"{len(items)} items are off by one.", **changes}
    return Pattern(
        Kind.ERROR, told["subject"], len(items), 9, items, ("demo/strong",), told["sentence"]
    )


def a_report(
    folder: Path,
    *failures: Row,
    run: Row | None = None,
    patterns: tuple[Pattern, ...] = (),
    earlier: tuple[EarlierRun, ...] = (),
    when: datetime = NOON,
    settings: Settings | None = None,
) -> Path:
    """Writes the report on these failures."""
    settings = settings or settings_in(folder)
    return write_report(settings, ReportData(run or a_run_row(), failures, patterns, earlier, when))


def headings(page: str, level: int = 2) -> list[str]:
    """What a reader of Markdown takes for headings of that level."""
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    return [
        tokens[number + 1].content
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == f"h{level}"
    ]
