"""The score that a run would have if what is unfair did not count."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from eval_pipeline.analysis.failures import WRONG
from eval_pipeline.results.runs import Row
from eval_pipeline.results.stats.intervals import Interval, wilson

OF_ITEMS = "items, each the mean of its replies"


class Score(NamedTuple):
    """A mean of so many: replies, or items where each of them has several."""

    hits: float
    of: int
    what: str = "replies"

    @property
    def share(self) -> float:
        return self.hits / self.of

    @property
    def interval(self) -> Interval | None:
        """Of items with several replies it is cautious: each counts as if it had one."""
        return wilson(min(self.hits, self.of), self.of)


def score_without(run: Row, failures: Sequence[Row], excluded: Sequence[Row]) -> Score | None:
    """The score if these failures did not count; None if nothing is left."""
    means = list(_means(run, failures, excluded)) if run.get("samples", 1) > 1 else []
    if means:
        left = [mean for mean in means if mean is not None]
        return Score(sum(left), len(left), OF_ITEMS) if left else None
    of = run["judged"] - len(excluded)
    return Score((run["correct"] or 0) - sum(map(_score, excluded)), of) if of > 0 else None


def _means(run: Row, failures: Sequence[Row], excluded: Sequence[Row]) -> Iterator[float | None]:
    """The mean of each item's replies; nothing at all if not every reply is accounted for."""
    of_items: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in failures:
        of_items[row["suite"], row["item_id"]].append(row)
    in_vain = sum(row["went"] != WRONG for row in failures)
    if run["items"] * run["samples"] - in_vain != run["judged"]:
        return
    yield from [1.0] * (run["items"] - len(of_items))
    left_out = {id(row) for row in excluded}
    for rows in of_items.values():
        wrong = [row for row in rows if row["went"] == WRONG and id(row) not in left_out]
        right = run["samples"] - len(rows)
        counting = right + len(wrong)
        yield (right + sum(map(_score, wrong))) / counting if counting else None


def _score(row: Row) -> float:
    return float(row["score"] or 0)
