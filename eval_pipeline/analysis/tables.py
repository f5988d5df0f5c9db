"""What failed in a run, and why, as people read it."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from eval_pipeline.analysis.failures import classified
from eval_pipeline.results.tables.format import (
    FittedTable,
    accuracy,
    cell,
    in_brackets,
    named,
    number,
    one_line,
)
from eval_pipeline.results.tables.runs import GROUPS, what_failed

LONGEST = 160

Row = Mapping[str, Any]
HEADINGS = {
    "MODEL_FAULT": "model's fault",
    "OVERLY_STRICT": "too strict",
    "AMBIGUOUS_TASK": "ambiguous",
    "KNOWN_GAP": "known gap",
    "unexplained": "unexplained",
}


def _step(failure: Row) -> str:
    return failure["failed_step"] or "-"


KNOWN: Mapping[str, Callable[[Row], str]] = {"failed_step": _step, "classification": classified}
"""What is told of failures if it is known of any."""


def totals_lines(document: Row) -> Iterator[str]:
    """How the run stands, how its replies failed, at which steps, and whose fault that was."""
    run, totals = document["run"], document["totals"]
    simulated = " (simulated)" if run["simulated"] else ""
    yield (
        f"{run['model']}{simulated}, run {run['run_id'][:8]}, experiment {run['experiment']}, "
        f"{run['state']}: of {totals['planned']} replies {totals['answered']} answered, "
        f"{totals['judged']} judged, {number(totals['correct'], '{:g}')} right, "
        f"accuracy {accuracy(totals).text}."
    )
    failed = (f"{times} {went}" for went, times in totals["failed"].items())
    yield f"Failed: {', '.join(failed)}."
    if totals["steps"]:
        yield f"Steps: {_counts(totals['steps'])}."
    if totals["classifications"]:
        by_people = f" ({totals['overridden']} by people)" if totals["overridden"] else ""
        yield (
            f"Classified: {_counts(totals['classifications'])}{by_people}; "
            f"{totals['unclassified']} not."
        )


def failures_tables(failures: Sequence[Row]) -> Iterator[FittedTable]:
    """Every failure, those that say nothing about the model apart from those that are wrong."""
    for went, title in GROUPS.items():
        if found := [one for one in failures if one["went"] == went]:
            told = [name for name in KNOWN if any(one[name] for one in found)]
            table = FittedTable(
                f"{title} ({len(found)})", "item", *told, "what", prose=("item", "what")
            )
            for one in found:
                known = (cell(KNOWN[name](one)) for name in told)
                table.add(cell(_named(one)), *known, cell(one_line(_what(one), LONGEST)))
            yield table


def analysed_table(rows: Sequence[Row]) -> FittedTable:
    """Of each run that was analysed, how many of its failures are whose."""
    columns = ("model", "run", "wrong", *HEADINGS.values())
    simulated = all(row["simulated"] for row in rows)
    title = "Why items failed" + (": answers of SIMULATED models" if simulated else "")
    table = FittedTable(title, *columns, right=columns[2:])
    for row in rows:
        special = in_brackets(
            "simulated" if row["simulated"] and not simulated else "",
            "" if row["experiment"] == "default" else row["experiment"],
        )
        numbers = (str(row[name]) for name in ("wrong", *HEADINGS))
        table.add(named(row["model"], special), row["run_id"][:8], *numbers)
    return table


def debug_line(run: Row, failures: Sequence[Row]) -> str:
    """The command that shows the first of the wrong ones, or of all, in full."""
    first = next((one for one in failures if one["went"] == "wrong"), failures[0])
    named = shlex.quote(f"{run['model']}@{run['run_id'][:8]}")
    item = shlex.quote(f"{first['suite']}/{first['item_id']}")
    return f"One in full: evals debug {named} {item}"


def _what(failure: Row) -> str:
    explained = failure["reasoning"] is not None
    return str(failure["error"]) if explained else what_failed(failure)


def _named(failure: Row) -> str:
    sample = f", sample {failure['sample']}" if failure["samples"] > 1 else ""
    return f"{failure['suite']}/{failure['item_id']} ({failure['category']}{sample})"


def _counts(counts: Mapping[str, int]) -> str:
    often = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{name} {times}" for name, times in often)
