"""Tables of runs, of their categories, and of what failed."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from eval_pipeline.results.runs import State, state_of
from eval_pipeline.results.tables.format import (
    Cell,
    FittedTable,
    Row,
    accuracy,
    all_simulated,
    cell,
    minute,
    named,
    number,
    one_line,
    remarks,
    titled,
    usd,
)
from eval_pipeline.text import listed

STYLES = {
    State.COMPLETE: "green",
    State.RUNNING: "cyan",
    State.UNFINISHED: "yellow",
    State.FAILED: "red",
    State.TO_JUDGE: "yellow",
}
MOST_NAMED = 3
SHORT = {State.FAILED: "failed"}
TO_DO = {
    State.UNFINISHED: "To ask the rest",
    State.FAILED: "To ask again what failed",
    State.TO_JUDGE: "To judge the rest",
}
GROUPS = {
    "no answer": "No answer: asked in vain, never counted as wrong",
    "no verdict": "No verdict: judged in vain, never counted as wrong",
    "wrong": "Wrong: scored below 1",
}


def runs_table(rows: Sequence[Row]) -> FittedTable:
    """One row per run, the newest first."""
    failing, other = any(row["failed"] for row in rows), not all(row["is_current"] for row in rows)
    table = _table(
        "Runs",
        rows,
        *("run", "model", "opened", "answered", *(["failed"] if failing else [])),
        *("judged", "accuracy", "USD", "state", *(["version"] if other else [])),
        dropped_first=("USD", "version", "opened", "failed"),
    )
    for row in rows:
        table.add(
            row["run_id"][:8],
            _model(row, rows),
            minute(row["opened_at"]),
            f"{row['answered']}/{row['planned']}",
            *([str(row["failed"])] if failing else []),
            str(row["judged"]),
            accuracy(row),
            usd(row["cost_usd"], row["cost_known_usd"]),
            _state(row),
            *([_version(row)] if other else []),
        )
    return table


def status_table(rows: Sequence[Row], title: str) -> FittedTable:
    """One row per run: how much is answered, what failed, how much is judged and right."""
    failing = any(row["failures"] for row in rows)
    table = _table(
        title,
        rows,
        *("run", "model", "answered", *(["no answer"] if failing else [])),
        *("judged", "right", "accuracy", "USD", "state"),
        dropped_first=("right", "USD"),
    )
    for row in rows:
        failures = ", ".join(f"{outcome} {times}" for outcome, times in row["failures"].items())
        table.add(
            row["run_id"][:8],
            _model(row, rows),
            f"{row['answered']}/{row['planned']}",
            *([cell(failures or "-")] if failing else []),
            str(row["judged"]),
            number(row["correct"], "{:g}"),
            accuracy(row),
            usd(row["cost_usd"], row["cost_known_usd"]),
            _state(row),
        )
    return table


def categories_table(row: Row) -> FittedTable:
    """One run, category by category."""
    columns = ("suite", "category", "answered", "failed", "judged", "right", "accuracy")
    simulated = " (simulated)" if row["simulated"] else ""
    title = f"{row['model']}{simulated}: categories"
    table = FittedTable(
        title, *columns, right=columns[2:], prose=columns[:2], dropped_first=["right"]
    )
    for one in row["categories"]:
        table.add(
            cell(one["suite"]),
            cell(one["category"]),
            f"{one['answered']}/{one['planned']}",
            str(one["failed"]),
            str(one["judged"]),
            number(one["correct"], "{:g}"),
            accuracy(one),
        )
    return table


def failed_tables(replies: Sequence[Row]) -> Iterator[FittedTable | Cell]:
    """Yield tables of a run's failures: without an answer, without a verdict, wrong."""
    for went, title in GROUPS.items():
        if found := [one for one in replies if one["went"] == went]:
            columns = ("item", "what")
            table = FittedTable(f"{title} ({found[0]['alike']})", *columns, prose=columns)
            for one in found:
                sample = f", sample {one['sample']}" if one["samples"] > 1 else ""
                name = f"{one['suite']}/{one['item_id']} ({one['category']}{sample})"
                table.add(cell(name), cell(one_line(what_failed(one), 160)))
            yield table
            if more := found[0]["alike"] - len(found):
                run = shlex.quote(_named_run(found[0]))
                yield cell(f"… and {more} more: evals status {run} --failed --all")


def failed_line(row: Row, replies: Sequence[Row]) -> str:
    """Return the counts of a run's replies by outcome, and of those to come."""
    counts = Counter({one["went"]: one["alike"] for one in replies})
    to_come = {
        "not asked yet": row["planned"] - row["answered"] - row["failed"],
        "not judged yet": max(0, row["answered"] - row["judged"] - counts["no verdict"]),
    }
    told = [f"{counts[went]} {went}" for went in GROUPS]
    told += [f"{number} {words}" for words, number in to_come.items() if number]
    simulated = " (simulated)" if row["simulated"] else ""
    about = f"run {row['run_id'][:8]}, experiment {row['experiment']}"
    return f"{row['model']}{simulated}, {about}: of {row['planned']} replies {', '.join(told)}."


def show_line(reply: Row) -> str:
    """The command that shows it in full."""
    item = f"{reply['suite']}/{reply['item_id']}"
    return f"One in full: evals show {_named_run(reply)} {shlex.quote(item)}"


def what_failed(reply: Row) -> str:
    """In a line: how asking ended, the step that failed, or what the judge says."""
    if reply["went"] == "no answer":
        return f"{reply['outcome']}: {reply['error'] or 'the server gave no reason'}"
    if reply["went"] == "no verdict":
        return f"{reply['judge_outcome']}: {reply['reason']}"
    if reply["failed_step"]:  # which the reason of code begins with
        return str(reply["reason"])
    if reply["outcome"] != "ok":
        return f"{reply['outcome']}: {reply['reason']}"
    said = reply["extracted_answer"]
    return reply["reason"] if said is None else f"answered {said}: {reply['reason']}"


def steps_left(rows: Iterable[Row]) -> list[str]:
    """Return the next steps, a line for each command."""
    rows = list(rows)
    lines = [f"{TO_DO[state]} ({of}): {step}" for state, step, of in _steps(rows)]
    undecided = [
        row["model"] for row in rows if state_of(row) is State.TO_JUDGE and row["next_step"] is None
    ]
    if undecided:
        lines.append(
            f"The rules alone cannot decide all replies of {listed(undecided, MOST_NAMED)}: set "
            'judge.rules to "first" and name a judge, then: evals fix --judge'
        )
    return lines or [f"Nothing is left to do in {'this run' if len(rows) == 1 else 'these runs'}."]


def other_steps_left(rows: Iterable[Row]) -> list[str]:
    """The same for runs that are not shown, but that `evals fix` would go on with too."""
    return [f"Also unfinished ({of}): {step}" for _, step, of in _steps(rows)]


def _steps(rows: Iterable[Row]) -> Iterator[tuple[State, str, str]]:
    """Yield each command once, with the state it ends and its models."""
    left: dict[tuple[State, str], list[str]] = {}
    for row in rows:
        if row["next_step"]:
            left.setdefault((state_of(row), row["next_step"]), []).append(row["model"])
    for (state, step), models in left.items():
        yield state, step, listed(models, MOST_NAMED)


def _named_run(reply: Row) -> str:
    return f"{reply['model']}@{reply['run_id'][:8]}"


def _table(
    title: str, rows: Sequence[Row], *columns: str, dropped_first: Sequence[str]
) -> FittedTable:
    return FittedTable(
        titled(title, rows),
        *columns,
        right=("answered", "failed", "judged", "right", "accuracy", "USD"),
        prose=("no answer", "version"),
        dropped_first=dropped_first,
        caption="Accuracy with its 95 % interval, over what was judged. Times are UTC.",
    )


def _model(row: Row, rows: Sequence[Row]) -> Cell:
    return named(row["model"], remarks(row, all_simulated=all_simulated(rows)))


def _state(row: Row) -> Cell:
    state = state_of(row)
    return Cell(state.value, SHORT.get(state), style=STYLES[state])


def _version(row: Row) -> Cell:
    return cell("" if row["is_current"] else row["version_name"] or row["benchmark_version"])
