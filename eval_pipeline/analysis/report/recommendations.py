"""What to do about the failures, grouped by who can do it, as lines of Markdown."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from itertools import filterfalse

from eval_pipeline.analysis.patterns import MOST_NAMED, Kind, Pattern, some
from eval_pipeline.analysis.report.data import (
    LONGEST_TEXT,
    ReportData,
    inline,
    link,
    name_of,
    step_of,
)
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row

SUSPECT, LEAST_MODELS = 0.8, 3
"""From which share of how many models on an item that they fail is worth a look."""
MOST_TO_LOOK_AT = 25
"""Items that are named where each is to be looked at."""
UNPATTERNED = "The model's fault, in no pattern and not seen before"
_CONFIGURED = {"lint", "typecheck", "install", "deploy"}
"""Steps that fail by rules and versions, which are set for many tasks at once."""


def recommendations(data: ReportData) -> dict[str, list[str]]:
    """Return what to do, by where: every classified failure is in a group, or in two."""
    blamed = data.classified(Classification.MODEL_FAULT)
    names = set(map(name_of, blamed))
    # Of these another sample is unfair, or a person has decided already.
    by_people = (row for row in blamed if row["overridden"])
    settled = set(map(name_of, (*data.actionable, *by_people)))
    failed = {one: names.intersection(one.items) for one in data.patterns}
    shared = {one: failed[one] - settled for one in failed if _is_suspect(one)}
    common = {one: failed[one] for one in failed if one.kind is not Kind.ITEM and failed[one]}
    patterned = set().union(*common.values())
    repeated: dict[str, set[str]] = defaultdict(set)
    for row in blamed:
        if name_of(row) not in patterned and (repeats := data.repeats(row)):
            repeated[link(repeats[0].run)].add(name_of(row))
    single = names.difference(*shared.values(), *common.values(), *repeated.values())
    config = list(filter(_is_configured, data.actionable))
    evals = list(filterfalse(_is_configured, data.actionable))
    return {
        "Eval improvements": [
            *_by_item(evals),
            *(_worth_a_look(pattern, items) for pattern, items in shared.items() if items),
        ],
        "Lint or config changes": list(_by_item(config)),
        "Model-specific notes": [
            *(_in_common(pattern, items) for pattern, items in common.items()),
            *(f"- Failed before, in {run}: {_named(items)}." for run, items in repeated.items()),
        ],
        "No action needed": [
            *_known_gaps(data),
            *([f"- {UNPATTERNED}: {_named(single)}."] if single else []),
        ],
    }


def set_by_people(rows: Iterable[Row]) -> str:
    """Return the names and classifications of these failures."""
    return _named([f"{name_of(row)} ({row['classification']})" for row in rows], MOST_TO_LOOK_AT)


def actions_in_vain(data: ReportData) -> Iterator[str]:
    """Yield what was done before, and did not help."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in data.wrong:
        for recorded in data.recorded(row):
            if recorded.action.is_done and not recorded.is_later:
                found[link(recorded.run)].append(name_of(row))
    for report, names in found.items():
        yield f"- An action recorded in {report} should have fixed {_named(names)}."


def _is_suspect(pattern: Pattern) -> bool:
    """Whether so many models failed an item that it may be the item's fault."""
    of = pattern.of
    return pattern.kind is Kind.ITEM and of >= LEAST_MODELS and pattern.count >= SUSPECT * of


def _is_configured(row: Row) -> bool:
    """Whether rules and versions are to be mended, and not the eval."""
    is_strict = row["classification"] == Classification.OVERLY_STRICT
    return is_strict and step_of(row) in _CONFIGURED


def _by_item(rows: Iterable[Row]) -> Iterator[str]:
    """Yield a line for all samples of an item that failed alike."""
    found: dict[tuple[str, str, str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        found[name_of(row), row["classification"], step_of(row), row["overridden"]].append(row)
    for (name, classification, step, is_by_person), alike in found.items():
        row = alike[0]
        times = f", {len(alike)} samples" if len(alike) > 1 else ""
        by_whom = ", set by a person" if is_by_person else ""
        why = row["override_note"] if is_by_person else row["reasoning"]
        words = inline(row["error"] or row["reason"] or "no error is known")
        words += f" — {inline(why, LONGEST_TEXT)}" if why else ""
        about = f"{classification} at {inline(step)}{times}{by_whom}"
        yield f"- **{inline(name)}** ({about}): {words}"


def _known_gaps(data: ReportData) -> Iterator[str]:
    """Yield what is on record already, by its entry."""
    found: dict[str, list[str]] = defaultdict(list)
    for row in data.classified(Classification.KNOWN_GAP):
        found[row["gap"] or ""].append(name_of(row))
    for gap, names in found.items():
        entry = f" “{inline(gap)}”" if gap else ""
        yield f"- A known gap{entry}: {_named(names)}."


def _worth_a_look(pattern: Pattern, names: Collection[str]) -> str:
    who = "all" if pattern.count == pattern.of else f"{pattern.count} of"
    return (
        f"- **Worth a look**, whether the task is fair: {who} {pattern.of} models that "
        f"were asked failed {_named(names, MOST_TO_LOOK_AT)}."
    )


def _in_common(pattern: Pattern, names: Collection[str]) -> str:
    """Return what the model does wrong more than once."""
    subject = inline(pattern.subject)
    what = f"“{subject}”" if pattern.kind is Kind.ERROR else subject
    of = f"the model's fault in {len(names)} of {pattern.count} items with it"
    if pattern.kind is Kind.CATEGORY:
        failed = f"{pattern.count} of {pattern.of} judged items failed"
        of = f"{failed}, the model's fault in {len(names)}"
    return f"- {str(pattern.kind).capitalize()}: {what} ({of}): {_named(names)}."


def _named(names: Collection[str], most: int = MOST_NAMED) -> str:
    return inline(some(sorted(set(names)), most), LONGEST_TEXT)
