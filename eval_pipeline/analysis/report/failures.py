"""A section for every failure: the error, whose fault it is, and whether it is new."""

import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from eval_pipeline.analysis.report.data import (
    LONGEST_TEXT,
    Recorded,
    Repeat,
    ReportData,
    inline,
    name_of,
    snippet,
    step_of,
)
from eval_pipeline.analysis.report.earlier import EarlierRun
from eval_pipeline.analysis.report.paths import ID_CHARACTERS
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row

MOST_IN_FULL = 200
"""Failures with all that is known of them; a longer report is too long to read."""
LONGEST_BRIEF = 160
NOT_CLASSIFIED = "not classified"
MOST_REPEATS = 5
"""Earlier runs that are named; more of them are counted."""
_SAME = {True: ", same error", False: ", another error", None: ""}


def failures_text(data: ReportData) -> str:
    """Return the heading of the failures, and how many are only listed."""
    total = len(data.wrong)
    if not total:
        return "## Failures\n\nNothing that was judged is wrong."
    if total <= MOST_IN_FULL:
        return "## Failures"
    return (
        f"## Failures\n\n{MOST_IN_FULL} of {total} failures are in full, those first that are "
        "not the model's fault. The rest follows them, in a line each."
    )


def failure_sections(data: ReportData) -> Iterator[str]:
    """Yield a section for each failure; of very many the rest in a line each."""
    chosen = _in_full(data)
    for row in data.wrong:
        if id(row) in chosen:
            yield _failure(row, data)
    if rest := [row for row in data.wrong if id(row) not in chosen]:
        yield "\n\n".join(_in_brief(rest, data))


def link(run: EarlierRun) -> str:
    """Return the name of an earlier run, with a link to its report in the same folder."""
    if run.report is None:
        return f"run {inline(run.run_id[:ID_CHARACTERS])} of {run.opened:%Y-%m-%d}"
    return f"[{inline(run.report.stem)}]({quote(run.report.name)})"


def _in_full(data: ReportData) -> set[int]:
    """Those that people can do most about, as many as can be read."""

    def rank(row: Row) -> int:
        if any(data.recorded(row)):
            return 0
        return {None: 3, Classification.MODEL_FAULT: 2}.get(row["classification"], 1)

    return {id(row) for row in sorted(data.wrong, key=rank)[:MOST_IN_FULL]}


def _in_brief(rows: Sequence[Row], data: ReportData) -> Iterator[str]:
    yield "### The rest in brief"
    yield f"One of them in full: evals debug {inline(data.run_name)} ITEM"
    yield "\n".join(_brief(row, data) for row in rows)


def _brief(row: Row, data: ReportData) -> str:
    error = inline(row["error"] or row["reason"] or "no error is known", LONGEST_BRIEF)
    by_whom = " (set by a person)" if row["overridden"] else ""
    told = [
        f"**{_named(row, data)}** (at {inline(step_of(row))}): {error}",
        f"{row['classification'] or NOT_CLASSIFIED}{by_whom}",
    ]
    if repeats := list(data.repeats(row)):
        told.append(_also(repeats))
    return f"- {' — '.join([*told, *map(_recorded, data.recorded(row))])}"


def _named(row: Row, data: ReportData) -> str:
    sample = f", sample {row['sample']}" if data.run.get("samples", 1) > 1 else ""
    return f"{inline(name_of(row))}{sample}"


def _failure(row: Row, data: ReportData) -> str:
    facts = (f"- {label}: {text}" for label, text in _facts(row, data))
    parts = [f"### {_named(row, data)}", "\n".join(facts)]
    for title, column in (
        ("What the model wrote:", "model_snippet"),
        ("What was expected:", "expected_snippet"),
    ):
        if row[column] and row[column].strip():
            parts += [title, snippet(row[column])]
    return "\n\n".join(parts)


def _facts(row: Row, data: ReportData) -> Iterator[tuple[str, str]]:
    yield "Category", inline(row["category"])
    yield "Failed at", inline(step_of(row))
    if error := row["error"] or row["reason"]:
        yield "Error", inline(error)
    yield "Classification", _classification(row)
    if row["gap"]:
        yield "Known gap", inline(row["gap"])
    if row["reasoning"]:
        yield "Reasoning", inline(row["reasoning"], LONGEST_TEXT)
    if repeats := list(data.repeats(row)):
        yield "Repeat", _also(repeats)
    for recorded in data.recorded(row):
        yield "Recorded action", _recorded(recorded)
    sample = f" --sample {row['sample']}" if data.run.get("samples", 1) > 1 else ""
    name = shlex.quote(name_of(row))
    yield "In full", f"evals debug {inline(data.run_name)} {inline(name)}{sample}"


def _classification(row: Row) -> str:
    said = f"**{row['classification']}**" if row["classification"] else "none yet"
    if row["overridden"]:
        note = f": {inline(row['override_note'])}" if row["override_note"] else ""
        analyst = row["analyst_classification"]
        whom = f"the analyst said {analyst}" if analyst else "the analyst said nothing"
        return f"{said} (set by a person{note}); {whom}"
    if row["classification"]:
        return said
    return f"{said}; {inline(why_unclassified(row))}"


def why_unclassified(row: Row) -> str:
    """Return why the failure has no classification."""
    if row["analyst"] is None:
        return "it was not looked into"
    return f"the analyst has no explanation: {row.get('unexplained_because') or 'it said nothing'}"


def _also(repeats: list[Repeat]) -> str:
    said = "; in ".join(link(run) + _SAME[same] for run, same in repeats[:MOST_REPEATS])
    more = len(repeats) - MOST_REPEATS
    return f"also failed in {said}" + (f"; and in {more} before these" if more > 0 else "")


def _recorded(recorded: Recorded) -> str:
    said = f'"{inline(recorded.action.text)}"'
    if not recorded.action.is_done:
        return f"An action noted in {link(recorded.run)} is not ticked off yet: {said}"
    if recorded.is_later:
        return f"An action recorded in {link(recorded.run)} is later than this run: {said}"
    return f"An action recorded in {link(recorded.run)} should have fixed this: {said}"
