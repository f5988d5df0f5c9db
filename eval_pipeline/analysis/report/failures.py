"""A section for every failure: what was wrong, whose fault it is, and whether it is new."""

import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from eval_pipeline.analysis.records import Classification
from eval_pipeline.analysis.report.data import (
    Material,
    Recorded,
    Repeat,
    name_of,
    note_of,
    step_of,
)
from eval_pipeline.analysis.report.earlier import Prior
from eval_pipeline.analysis.report.sections import Section
from eval_pipeline.analysis.report.texts import LONGEST_TEXT, inline, snippet, whose
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.overview import Row

MOST_IN_FULL = 200
"""Failures that are told with all that is known; a longer report is read by nobody."""
LONGEST_BRIEF = 160
NOT_CLASSIFIED = "not classified"
_NAME_CHARACTERS = 12
MOST_REPEATS = 5
"""Earlier reports that are named; more of them are counted."""
_SAME = {True: ", same error", False: ", another error", None: ""}


def failures_text(material: Material) -> str:
    """What stands before the failures."""
    total = len(material.wrong)
    if not total:
        return "## Failures\n\nNothing that was judged is wrong."
    if total <= MOST_IN_FULL:
        return "## Failures"
    return (
        f"## Failures\n\n{MOST_IN_FULL} of {total} failures are told in full, those first that "
        "are not the model's fault. The rest stands behind them, in a line each."
    )


def failure_sections(material: Material) -> Iterator[Section]:
    """Each failure in a section of its own; of very many the rest in a line each."""
    chosen = _in_full(material)
    for row in material.wrong:
        if id(row) in chosen:
            name = fingerprint(row["suite"], row["item_id"], row["sample"])[:_NAME_CHARACTERS]
            yield Section(f"failure-{name}", _failure(row, material))
    if rest := [row for row in material.wrong if id(row) not in chosen]:
        yield Section("failure-rest", "\n\n".join(_in_brief(rest, material)))


def link(prior: Prior) -> str:
    """An earlier report, which stands in the same folder."""
    return f"[{inline(prior.path.stem)}]({quote(prior.path.name)})"


def repeated(repeat: Repeat) -> str:
    """In which report the item failed before."""
    return link(repeat.prior) + _SAME[repeat.is_same_error]


def _in_full(material: Material) -> set[int]:
    """Those that people can do most about, as many as can be read."""

    def rank(row: Row) -> int:
        if any(material.recorded(row)):
            return 0
        return {None: 3, Classification.MODEL_FAULT: 2}.get(row["classification"], 1)

    return {id(row) for row in sorted(material.wrong, key=rank)[:MOST_IN_FULL]}


def _in_brief(rows: Sequence[Row], material: Material) -> Iterator[str]:
    yield "### The rest in brief"
    yield f"One of them in full: evals debug {inline(material.run_name)} ITEM"
    yield "\n".join(_brief(row, material) for row in rows)
    yield "\n".join(note_of(row).line() for row in rows)


def _brief(row: Row, material: Material) -> str:
    error = inline(row["error"] or row["reason"] or "no error is known", LONGEST_BRIEF)
    by_whom = " (set by a person)" if row["overridden"] else ""
    told = [
        f"**{_named(row, material)}** (at {inline(step_of(row))}): {error}",
        f"{whose(row['classification'] or NOT_CLASSIFIED)}{by_whom}",
    ]
    if repeats := list(material.repeats(row)):
        told.append(_also(repeats))
    return f"- {' — '.join([*told, *map(_recorded, material.recorded(row))])}"


def _named(row: Row, material: Material) -> str:
    sample = f", sample {row['sample']}" if material.run.get("samples", 1) > 1 else ""
    return f"{inline(name_of(row))}{sample}"


def _failure(row: Row, material: Material) -> str:
    facts = (f"- {label}: {text}" for label, text in _facts(row, material))
    parts = [f"### {_named(row, material)}", note_of(row).line(), "\n".join(facts)]
    for title, column in (
        ("What the model wrote:", "model_snippet"),
        ("What was expected:", "expected_snippet"),
    ):
        if row[column] and row[column].strip():
            parts += [title, snippet(row[column])]
    return "\n\n".join(parts)


def _facts(row: Row, material: Material) -> Iterator[tuple[str, str]]:
    yield "Category", inline(row["category"])
    yield "Failed at", inline(step_of(row))
    if error := row["error"] or row["reason"]:
        yield "Error", inline(error)
    yield "Classification", _classification(row)
    if row["gap"]:
        yield "Known gap", inline(row["gap"])
    if row["reasoning"]:
        yield "Reasoning", inline(row["reasoning"], LONGEST_TEXT)
    if repeats := list(material.repeats(row)):
        yield "Repeat", _also(repeats)
    for recorded in material.recorded(row):
        yield "Recorded action", _recorded(recorded)
    sample = f" --sample {row['sample']}" if material.run.get("samples", 1) > 1 else ""
    name = shlex.quote(name_of(row))
    yield "In full", f"evals debug {inline(material.run_name)} {inline(name)}{sample}"


def _classification(row: Row) -> str:
    said = f"**{whose(row['classification'])}**" if row["classification"] else "none yet"
    if row["overridden"]:
        note = f": {inline(row['override_note'])}" if row["override_note"] else ""
        analyst = row["analyst_classification"]
        whom = f"the analyst said {whose(analyst)}" if analyst else "the analyst said nothing"
        return f"{said} (set by a person{note}); {whom}"
    if row["classification"]:
        return said
    return f"{said}; {inline(why_unclassified(row))}"


def why_unclassified(row: Row) -> str:
    """Why nobody has said whose fault it is."""
    if row["analyst"] is None:
        return "it was not looked into"
    return f"the analyst has no explanation: {row.get('unexplained_because') or 'it said nothing'}"


def _also(repeats: list[Repeat]) -> str:
    said = "; in ".join(repeated(one) for one in repeats[:MOST_REPEATS])
    more = len(repeats) - MOST_REPEATS
    return f"also failed in {said}" + (f"; and in {more} before these" if more > 0 else "")


def _recorded(recorded: Recorded) -> str:
    said = f'"{inline(recorded.action.text)}"'
    if not recorded.action.is_done:
        return f"An action noted in {link(recorded.prior)} is not ticked off yet: {said}"
    if recorded.is_later:
        return f"An action recorded in {link(recorded.prior)} is later than this run: {said}"
    return f"An action recorded in {link(recorded.prior)} should have fixed this: {said}"
