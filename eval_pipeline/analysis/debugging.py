"""All that it takes to find out why an item failed, its grader included."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import duckdb

from eval_pipeline.analysis.failures import WRONG, failures_of_item
from eval_pipeline.benchmark import past_items
from eval_pipeline.coding.records import CodingTask, Files
from eval_pipeline.item_report.choosing import Chosen
from eval_pipeline.item_report.gathering import ItemReport, ItemsOf, gather
from eval_pipeline.item_report.page import Section, sections
from eval_pipeline.journal import Journal
from eval_pipeline.results.runs import Row
from eval_pipeline.settings import Settings

ANALYSIS = (
    ("error", "error"),
    ("reasoning", "reasoning"),
    ("gap", "known gap"),
    ("model_snippet", "the model wrote"),
    ("expected_snippet", "expected"),
    ("unexplained_because", "not explained"),
)


class Case(NamedTuple):
    """One item in a run, what grades it, and what went wrong with it, sample by sample."""

    report: ItemReport
    grader: Files
    failures: list[Row]


def look_into(
    db: duckdb.DuckDBPyConnection,
    settings: Settings,
    journal: Journal,
    chosen: Chosen,
    sample: int | None = None,
    *,
    items: ItemsOf = past_items,
) -> Case:
    """Everything about the item, of all samples or of one."""
    report = gather(db, settings, journal, chosen, sample, items=items)
    failed = failures_of_item(db, chosen)
    grader = report.item.grader if isinstance(report.item, CodingTask) else {}
    return Case(report, grader, [one for one in failed if sample in (None, one["sample"])])


def debug_document(case: Case) -> Row:
    """The same as plain values: what `evals show --json` tells, the grader, and the analysis."""
    return {**case.report.as_json(), "grader": case.grader, "failures": case.failures}


def debug_sections(case: Case) -> Iterator[Section]:
    """The same as people read it."""
    yield from sections(case.report)
    for path, text in case.grader.items():
        yield Section(f"Grader file {path}", text)
    for failure in case.failures:
        if failure["went"] == WRONG:
            yield _analysis(failure)


def classified(failure: Mapping[str, Any]) -> str:
    """What a failure is said to be, and by whom if that was a person."""
    if failure["classification"] is None:
        return "not classified"
    if not failure["overridden"]:
        return str(failure["classification"])
    analyst = failure["analyst_classification"]
    instead = f", the analyst: {analyst}" if analyst else ""
    return f"{failure['classification']} (said by a person{instead})"


def _analysis(failure: Row) -> Section:
    name = f" (sample {failure['sample']})" if failure["samples"] > 1 else ""
    lines = [f"{words}: {failure[column]}" for column, words in ANALYSIS if failure[column]]
    if failure["overridden"]:
        lines.insert(0, f"note: {failure['override_note']}")
    if failure["analyst"]:
        lines.append(f"analyst: {failure['analyst']}")
    return Section(f"Analysis{name}: {classified(failure)}", "\n".join(lines))
