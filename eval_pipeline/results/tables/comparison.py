"""Two sides compared, in sentences and as the items on which they differ."""

from typing import TYPE_CHECKING

from eval_pipeline.results.stats.intervals import LEVEL, Interval
from eval_pipeline.results.tables.format import FittedTable, cell

if TYPE_CHECKING:  # loading it takes a moment
    from eval_pipeline.results.comparisons import SideBySide

OTHERWISE_JUDGED = ", with another prompt or limit than its official verdicts"
_TESTS = {"mcnemar": "exact McNemar test", "sign_flip": "sign-flip test"}


def comparison_lines(found: "SideBySide") -> list[str]:
    """What two sides being compared comes to, in sentences."""
    one, paired = found.compared, found.compared.paired
    better = found.a if paired.difference > 0 else found.b
    p_value = paired.p_value if found.corrected is None else found.corrected
    lines = [
        f"A: {found.a.name}: {one.accuracy_a:.1%}",
        f"B: {found.b.name}: {one.accuracy_b:.1%}",
        f"A - B: {_points(paired.difference)} points{_within(paired.interval)} on "
        f"{_counted(paired.items, 'item')} that both were scored on by {found.judge.judge}"
        + ("" if found.is_official else OTHERWISE_JUDGED),
        f"A scored higher on {paired.better}, B on {paired.worse} of them.",
        f"p = {paired.p_value:.2g} ({_TESTS[paired.test]})"
        + (
            ""
            if found.corrected is None
            else f"; {found.corrected:.2g} corrected for {_counted(found.pairs, 'pair')} (Holm)"
        ),
    ]
    if (detectable := paired.detectable(found.pairs or 1)) is not None:
        lines.append(
            f"A true difference of {detectable * 100:.1f} points would be found in 80 % of such "
            "comparisons; do not expect a smaller one to show."
        )
    certain = p_value < LEVEL
    lines.append(f"{better.name} is better." if certain else "They can not be told apart.")
    return lines


def differences_table(found: "SideBySide", most: int) -> FittedTable:
    """The items on which they differ, those that A won first."""
    left = max(0, len(found.differences) - most)
    table = FittedTable(
        "Items on which they differ",
        *("item", "category", "A", "B"),
        right=("A", "B"),
        prose=("item", "category"),
        caption=f"{left} more; all with --items {len(found.differences)}" if left else "",
    )
    for one in found.differences[:most]:
        name = f"{one.suite}/{one.item_id}"
        table.add(cell(name), cell(one.category), f"{one.score_a:g}", f"{one.score_b:g}")
    return table


def _within(interval: Interval | None) -> str:
    if interval is None:
        return ""
    return f" (95 % interval {_points(interval.low)} to {_points(interval.high)})"


def _counted(number: int | None, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _points(share: float) -> str:
    return f"{share * 100:+.1f}"
