"""Numbers into pictures: where each point, line and word of a chart stands, for SVG templates.

Pure geometry in user units: what it looks like, light or dark, is the style sheet's affair.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import ceil, floor, isfinite, log10
from typing import Any, NamedTuple

from eval_pipeline.stats.pareto import pareto_front

WIDTH, HEIGHT = 640.0, 320.0
LEFT, RIGHT, TOP, BOTTOM = 48.0, 12.0, 12.0, 36.0
MOST_MARKS = 8
DECADE = 10.0


class Mark(NamedTuple):
    """A line across the chart, and what it says at the axis."""

    at: float
    text: str


class Dot(NamedTuple):
    """A point with the interval of its value; `kind` is its class, `link` where it leads."""

    x: float
    y: float
    low: float
    high: float
    title: str
    link: str = ""
    kind: str = ""


@dataclass(frozen=True)
class Chart:
    """What an SVG template draws."""

    dots: Sequence[Dot]
    across: Sequence[Mark]
    up: Sequence[Mark]
    line: Sequence[tuple[float, float]] = ()
    x_label: str = ""
    width: float = WIDTH
    height: float = HEIGHT
    left: float = LEFT
    top: float = TOP
    right: float = field(default=WIDTH - RIGHT)
    bottom: float = field(default=HEIGHT - BOTTOM)

    @property
    def points(self) -> str:
        """The line as SVG has it."""
        return " ".join(f"{x:.1f},{y:.1f}" for x, y in self.line)


def cost_chart(rows: Sequence[dict[str, Any]], links: Sequence[str]) -> Chart | None:
    """Accuracy against cost on a logarithmic scale, with the Pareto front; None without costs."""
    known = [
        (row, link)
        for row, link in zip(rows, links, strict=True)
        if row["cost_usd"] is not None and isfinite(row["cost_usd"]) and row["cost_usd"] > 0
    ]
    if not known:
        return None
    costs = [row["cost_usd"] for row, _ in known]
    # Who is simulated is not to outshine anybody real.
    real = [row["cost_usd"] if not row["simulated"] else float("nan") for row, _ in known]
    compared = real if any(map(isfinite, real)) else costs
    front = pareto_front(compared, [row["accuracy"] for row, _ in known])
    scale = _Logarithmic.over(costs)
    dots = [
        Dot(
            x=scale.place(row["cost_usd"]),
            y=_share(row["accuracy"]),
            low=_share(row["accuracy_low"]),
            high=_share(row["accuracy_high"]),
            title=f"{row['model']}: {row['accuracy']:.1%} for {row['cost_usd']:.4g} USD",
            link=link,
            kind="front" if number in front else "",
        )
        for number, (row, link) in enumerate(known)
    ]
    line = [(dots[number].x, dots[number].y) for number in front]
    across = [Mark(scale.place(at), _usd(at)) for at in scale.marks()]
    return Chart(dots, across, _shares(), line, "USD per run")


def history_chart(rows: Sequence[dict[str, Any]], links: Sequence[str]) -> Chart | None:
    """Accuracy of runs over time; None without any."""
    known = [
        (row, link)
        for row, link in zip(rows, links, strict=True)
        if row["accuracy"] is not None and row["opened_at"] is not None
    ]
    if not known:
        return None
    moments: list[datetime] = [row["opened_at"] for row, _ in known]
    margin = (max(moments) - min(moments)) / 25 or timedelta(hours=12)
    first, last = min(moments) - margin, max(moments) + margin

    def place(moment: datetime) -> float:
        return _across((moment - first) / (last - first))

    dots = [
        Dot(
            x=place(moment),
            y=_share(row["accuracy"]),
            low=_share(row["accuracy_low"]),
            high=_share(row["accuracy_high"]),
            title=f"{row['opened_at']:%Y-%m-%d %H:%M} {row['experiment']}: {row['accuracy']:.1%}",
            link=link,
            kind="" if row["complete"] else "part",
        )
        for moment, (row, link) in zip(moments, known, strict=True)
    ]
    form = "%Y-%m-%d" if last - first > timedelta(days=3) else "%m-%d %H:%M"
    ticks = [first + (last - first) * share for share in (0.1, 0.3, 0.5, 0.7, 0.9)]
    across = [Mark(place(tick), f"{tick:{form}}") for tick in ticks]
    return Chart(dots, across, _shares(), x_label="opened")


def calibration_chart(bins: Sequence[dict[str, Any]]) -> Chart | None:
    """Accuracy at each stated confidence, beside what would be perfect; None without bins."""
    if not bins:
        return None
    dots = [
        Dot(
            x=_across(row["mean_confidence"]),
            y=_share(row["accuracy"]),
            low=_share(row["accuracy_low"]),
            high=_share(row["accuracy_high"]),
            title=f"{row['size']} replies, {row['mean_confidence']:.0%} sure, "
            f"{row['accuracy']:.0%} right",
        )
        for row in bins
    ]
    across = [Mark(_across(at / 4), f"{at / 4:.0%}") for at in range(5)]
    perfect = [(_across(0), _share(0)), (_across(1), _share(1))]
    return Chart(dots, across, _shares(), perfect, "stated confidence")


@dataclass(frozen=True)
class _Logarithmic:
    """A scale of powers of ten."""

    first: float
    last: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "_Logarithmic":
        first, last = log10(min(values)), log10(max(values))
        margin = max((last - first) * 0.06, 0.1)
        return cls(first - margin, last + margin)

    def place(self, value: float) -> float:
        return _across((log10(value) - self.first) / (self.last - self.first))

    def marks(self) -> list[float]:
        """1, 2 and 5 of each decade, or the decades alone where there are many."""
        decades = range(floor(self.first), ceil(self.last) + 1)
        for steps in ((1, 2, 5), (1,)):
            found = [
                step * DECADE**decade
                for decade in decades
                for step in steps
                if self.first <= log10(step * DECADE**decade) <= self.last
            ]
            if len(found) <= MOST_MARKS:
                return found
        return found[:: ceil(len(found) / MOST_MARKS)]


def _usd(amount: float) -> str:
    return f"{amount:,.0f}" if amount >= 1 else f"{amount:g}"


def _across(share: float) -> float:
    return LEFT + share * (WIDTH - LEFT - RIGHT)


def _share(share: float) -> float:
    return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)


def _shares() -> list[Mark]:
    return [Mark(_share(at / 4), f"{at / 4:.0%}") for at in range(5)]
