"""What to do about the failures, grouped by who can do it."""

from collections import defaultdict
from collections.abc import Collection, Iterable
from itertools import filterfalse

from eval_pipeline.analysis.patterns import Kind, Pattern
from eval_pipeline.analysis.report.data import ReportData, link, name_of, step_of
from eval_pipeline.records.diagnosis import Classification
from eval_pipeline.results.runs import Row
from eval_pipeline.text import listed

SUSPECT, LEAST_MODELS = 0.8, 3
"""From which share of how many models on an item that they fail is worth a look."""
_CONFIGURED = {"lint", "typecheck", "install", "deploy"}
"""Steps that fail by rules and versions, which are set for many tasks at once."""


class Advice:
    """The classified failures by what to do about them: each is in one group, or in two."""

    def __init__(self, data: ReportData) -> None:
        blamed = data.classified(Classification.MODEL_FAULT)
        names = set(map(name_of, blamed))
        # An item is settled if another sample of it is unfair or a person has decided.
        by_people = (row for row in blamed if row["overridden"])
        settled = set(map(name_of, (*data.actionable, *by_people)))
        found = {one: names.intersection(one.items) for one in data.patterns}
        shared = {one: found[one] - settled for one in found if _is_suspect(one)}
        self.shared = {one: left for one, left in shared.items() if left}
        self.common = {one: found[one] for one in found if one.kind is not Kind.ITEM and found[one]}
        patterned = set().union(*self.common.values())
        self.repeated: dict[str, set[str]] = defaultdict(set)
        for row in blamed:
            if name_of(row) not in patterned and (repeats := data.repeats(row)):
                self.repeated[link(repeats[0].run)].add(name_of(row))
        in_groups = (*self.shared.values(), *self.common.values(), *self.repeated.values())
        self.single = names.difference(*in_groups)
        self.config = _alike(filter(_is_configured, data.actionable))
        self.evals = _alike(filterfalse(_is_configured, data.actionable))
        self.gaps: dict[str, set[str]] = defaultdict(set)
        for row in data.classified(Classification.KNOWN_GAP):
            self.gaps[row["gap"] or ""].add(name_of(row))


def actions_in_vain(data: ReportData) -> dict[str, set[str]]:
    """Return the items that actions noted beside an earlier report should have fixed."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in data.wrong:
        for recorded in data.recorded(row):
            if recorded.action.is_done and not recorded.is_later:
                found[link(recorded.run)].add(name_of(row))
    return found


def set_by_people(data: ReportData) -> list[str]:
    """Return the items that people have classified, and as what."""
    by_people = (row for row in data.wrong if row["overridden"])
    return [f"{name_of(row)} ({row['classification']})" for row in by_people]


def first_of(names: Iterable[str], most: int) -> str:
    """Return the first of these names, each once, and how many more there are."""
    return listed(sorted(set(names)), most)


def _is_suspect(pattern: Pattern) -> bool:
    """Whether so many models failed an item that it may be the item's fault."""
    of = pattern.of
    return pattern.kind is Kind.ITEM and of >= LEAST_MODELS and pattern.count >= SUSPECT * of


def _is_configured(row: Row) -> bool:
    """Return whether to correct the configured rules or versions rather than the eval."""
    is_strict = row["classification"] == Classification.OVERLY_STRICT
    return is_strict and step_of(row) in _CONFIGURED


def _alike(rows: Iterable[Row]) -> Collection[list[Row]]:
    """Return the samples of an item together that failed alike."""
    found: dict[tuple[str, str, str, bool], list[Row]] = defaultdict(list)
    for row in rows:
        found[name_of(row), row["classification"], step_of(row), row["overridden"]].append(row)
    return found.values()
