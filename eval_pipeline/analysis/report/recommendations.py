"""What to do about the failures, grouped by who can do it."""

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum

from eval_pipeline.analysis.patterns import MOST_NAMED, Kind, Pattern, some
from eval_pipeline.analysis.report.data import LONGEST_TEXT, ReportData, inline, name_of, step_of
from eval_pipeline.analysis.report.failures import link
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row

SUSPECT, LEAST_MODELS = 0.8, 3
"""From which share of how many models on an item that they fail is worth a look."""
MOST_TO_LOOK_AT = 25
"""Items that are named where each is to be looked at."""
_CONFIGURED = {"lint", "typecheck", "install", "deploy"}
"""Steps that fail by rules and versions, which are set for many tasks at once."""


class Group(StrEnum):
    """Where something is to be done."""

    EVALS = "Eval improvements"
    CONFIG = "Lint or config changes"
    MODEL = "Model-specific notes"
    NOTHING = "No action needed"


def recommendations_text(data: ReportData) -> str:
    """Every classified failure in a group, or in two; all of the groups are there."""
    parts = ["## Recommendations"]
    if left := sum(not row["classification"] for row in data.wrong):
        parts.append(f"Not classified yet, and so in none of the groups: {left}.")
    if by_people := [row for row in data.wrong if row["overridden"]]:
        said = [f"{name_of(row)} ({row['classification']})" for row in by_people]
        parts.append(f"Set by a person: {_named(said, MOST_TO_LOOK_AT)}.")
    if in_vain := list(_in_vain(data)):
        parts.append("\n".join(in_vain))
    for group, lines in _groups(data).items():
        parts += [f"### {group}", "\n".join(lines) or "None."]
    return "\n\n".join(parts)


def _groups(data: ReportData) -> dict[Group, list[str]]:
    evals, config = _unfair(data)
    blamed = _Blamed(data, {name_of(row) for row in (*evals, *config)})
    return {
        Group.EVALS: [*_by_item(evals), *blamed.to_look_at()],
        Group.CONFIG: list(_by_item(config)),
        Group.MODEL: [*blamed.by_pattern(), *blamed.repeated()],
        Group.NOTHING: [*_known(data), *blamed.others()],
    }


def _in_vain(data: ReportData) -> Iterator[str]:
    """What was done before, and did not help."""
    found: dict[str, list[str]] = {}
    for row in data.wrong:
        for recorded in data.recorded(row):
            if recorded.should_have_helped:
                found.setdefault(link(recorded.run), []).append(name_of(row))
    for report, names in found.items():
        yield f"- An action recorded in {report} should have fixed {_named(names)}."


def _unfair(data: ReportData) -> tuple[list[Row], list[Row]]:
    """What is to be mended in the evals, and what in their rules and versions."""
    evals: list[Row] = []
    config: list[Row] = []
    for row in data.classified(Classification.OVERLY_STRICT, Classification.AMBIGUOUS_TASK):
        is_strict = row["classification"] == Classification.OVERLY_STRICT
        (config if is_strict and step_of(row) in _CONFIGURED else evals).append(row)
    return evals, config


def _by_item(rows: Sequence[Row]) -> Iterator[str]:
    """One line for all samples of an item that failed alike."""
    found: dict[tuple[str, str, str, bool], list[Row]] = {}
    for row in rows:
        alike = (name_of(row), row["classification"], step_of(row), bool(row["overridden"]))
        found.setdefault(alike, []).append(row)
    for (name, classification, step, is_by_person), alike_rows in found.items():
        row = alike_rows[0]
        times = f", {len(alike_rows)} samples" if len(alike_rows) > 1 else ""
        by_whom = ", set by a person" if is_by_person else ""
        about = f"{classification} at {inline(step)}{times}{by_whom}"
        why = row["override_note"] if row["overridden"] else row["reasoning"]
        words = [inline(row["error"] or row["reason"] or "no error is known")]
        words += [inline(why, LONGEST_TEXT)] if why else []
        yield f"- **{inline(name)}** ({about}): {' — '.join(words)}"


def _known(data: ReportData) -> Iterator[str]:
    """What is on record already, by its entry."""
    found: dict[str, list[str]] = {}
    for row in data.classified(Classification.KNOWN_GAP):
        found.setdefault(row["gap"] or "", []).append(name_of(row))
    for gap, names in found.items():
        entry = f" “{inline(gap)}”" if gap else ""
        yield f"- A known gap{entry}: {_named(names)}."


class _Blamed:
    """The failures that are the model's fault, by what makes them more than single ones."""

    def __init__(self, data: ReportData, unfair: Collection[str]) -> None:
        self._data = data
        self._rows = data.classified(Classification.MODEL_FAULT)
        # Of these another sample is unfair, or a person has decided already.
        settled = {name_of(row) for row in self._rows if row["overridden"]} | set(unfair)
        shared = [one for one in data.patterns if one.kind is Kind.ITEM and _is_suspect(one)]
        common = [one for one in data.patterns if one.kind is not Kind.ITEM]
        self._shared = {one: names for one in shared if (names := self._in(one) - settled)}
        self._common = {one: names for one in common if (names := self._in(one))}
        self._repeated = self._by_report()

    def to_look_at(self) -> Iterator[str]:
        """What hardly any model gets right."""
        for pattern, names in self._shared.items():
            who = "all" if pattern.count == pattern.of else f"{pattern.count} of"
            yield (
                f"- **Worth a look**, whether the task is fair: {who} {pattern.of} models that "
                f"were asked failed {_named(names, MOST_TO_LOOK_AT)}."
            )

    def by_pattern(self) -> Iterator[str]:
        """What the model does wrong more than once."""
        for pattern, names in self._common.items():
            subject = inline(pattern.subject)
            what = f"“{subject}”" if pattern.kind is Kind.ERROR else subject
            of = f"the model's fault in {len(names)} of {pattern.count} items with it"
            if pattern.kind is Kind.CATEGORY:
                failed = f"{pattern.count} of {pattern.of} judged items failed"
                of = f"{failed}, the model's fault in {len(names)}"
            yield f"- {str(pattern.kind).capitalize()}: {what} ({of}): {_named(names)}."

    def repeated(self) -> Iterator[str]:
        """What failed before, by the latest report that it was in."""
        for report, names in self._repeated.items():
            yield f"- Failed before, in {report}: {_named(names)}."

    def others(self) -> Iterator[str]:
        """What stands for itself."""
        told = (*self._shared.values(), *self._common.values(), *self._repeated.values())
        if names := {name_of(row) for row in self._rows}.difference(*told):
            yield f"- The model's fault, in no pattern and not seen before: {_named(names)}."

    def _in(self, pattern: Pattern) -> set[str]:
        return {name_of(row) for row in self._rows}.intersection(pattern.items)

    def _by_report(self) -> dict[str, set[str]]:
        patterned = set().union(*self._common.values())
        found: dict[str, set[str]] = {}
        for row in self._rows:
            latest = next(self._data.repeats(row), None)
            if latest is not None and name_of(row) not in patterned:
                found.setdefault(link(latest.run), set()).add(name_of(row))
        return found


def _is_suspect(pattern: Pattern) -> bool:
    """Whether so many models failed an item that it may be the item's fault."""
    return pattern.of >= LEAST_MODELS and pattern.count >= SUSPECT * pattern.of


def _named(names: Collection[str], most: int = MOST_NAMED) -> str:
    return inline(some(sorted(set(names)), most), LONGEST_TEXT)
