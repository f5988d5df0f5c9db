"""Accessible SVG: elements, names made harmless, and a chart as a file, in a page, in Markdown."""

import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, isfinite, log10
from textwrap import wrap
from typing import Any, NamedTuple
from unicodedata import category, east_asian_width

from markupsafe import Markup, escape

from eval_pipeline.text import plain

Row = Mapping[str, Any]

STYLE = """
svg.chart { --c-ground: var(--ground, #fff); --c-ink: var(--ink, #1a2230);
  --c-quiet: var(--quiet, #556070); --c-grid: var(--line, #d5dbe4); --c-mark: var(--link, #1f4fb8);
  --c-best: var(--partly, #8a6100); --c-range: #6f8fcf; font: 12px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { svg.chart { --c-ground: var(--ground, #12161d);
  --c-ink: var(--ink, #e6eaf1); --c-quiet: var(--quiet, #a3adbb); --c-grid: var(--line, #333c4a);
  --c-mark: var(--link, #8ab4ff); --c-best: var(--partly, #e0b24a); --c-range: #6687c8; } }
.chart .ground { fill: var(--c-ground); }
.chart text { fill: var(--c-ink); }
.chart .quiet { fill: var(--c-quiet); font-size: 11px; }
.chart .title { font-size: 15px; font-weight: 600; }
.chart .end { text-anchor: end; }
.chart .middle { text-anchor: middle; }
.chart .name { paint-order: stroke; stroke: var(--c-ground); stroke-width: 3px; }
.chart .ties { font-family: ui-monospace, monospace; }
.chart .grid { stroke: var(--c-grid); }
.chart .range { stroke: var(--c-range); stroke-width: 2; }
.chart .even { stroke: var(--c-quiet); stroke-dasharray: 4 3; }
.chart .step { fill: none; stroke: var(--c-best); stroke-width: 1.5; }
.chart .dot { fill: var(--c-mark); stroke: var(--c-mark); stroke-width: 1.5; }
.chart .best { fill: var(--c-best); stroke: var(--c-best); }
.chart .hollow { fill: var(--c-ground); }
.chart .none { fill: none; stroke: var(--c-quiet); stroke-dasharray: 2 3; }
.chart .h0 { fill: #eaf1fb; } .chart .h1 { fill: #cfdff5; } .chart .h2 { fill: #b0cbee; }
.chart .h3 { fill: #8fb4e5; } .chart .h4 { fill: #3d6fb5; } .chart .h5 { fill: #2c5a9e; }
.chart .h6 { fill: #1d4684; } .chart .h7 { fill: #123266; }
.chart .dark { fill: #10151d; } .chart .light { fill: #fff; }
"""
"""Light and dark; where a page has colours of its own, those. Needs no inline style."""

LONGEST_NAME = 42
_WIDE, _CAPITAL, _OTHER = 1.0, 0.76, 0.6
MOST_MARKS = 8
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25)
_ABOVE, _BELOW, _LINE = 34, 8, 15
# A page of Dagster becomes slow with more.
_MOST_CHARACTERS = 200_000


def tag(name: str, *inner: str, **attributes: object) -> Markup:
    """Return an element; texts and values are escaped, Markup stays as it is."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_spelled(value))}"'
        for key, value in attributes.items()
    )
    return Markup(f"<{name}{given}>{''.join(map(escape, inner))}</{name}>")  # noqa: S704


def _spelled(value: object) -> object:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value


def label(x: float, y: float, words: str, look: str = "") -> Markup:
    """Return words with their middle at the height y."""
    return tag("text", words, x=x, y=y + 4.0, **({"class_": look} if look else {}))


def line(x1: float, y1: float, x2: float, y2: float, look: str) -> Markup:
    """Return a line."""
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=look)


def dot(x: float, y: float, look: str = "", *, about: str, link: str = "", r: float = 4) -> Markup:
    """Return a mark with its figures on hover: a diamond for the best, else a circle."""
    told, look = tag("title", about), f"dot {look}".strip()
    if "best" in look:
        path = f"M{x:.1f} {y - 6:.1f}l6 6l-6 6l-6-6z"
        mark = tag("path", told, d=path, class_=look)
    else:
        mark = tag("circle", told, cx=x, cy=y, r=r, class_=look)
    return tag("a", mark, href=link) if link else mark


def shown(name: object, longest: int = LONGEST_NAME) -> str:
    """Return a name on one line, without control characters, its middle left out if too long."""
    kept: list[str] = []
    for char in " ".join(str(name).split()):
        # Marks piled on one letter would reach into other rows: two stay.
        if not all(category(one).startswith("M") for one in [*kept[-2:], char]):
            kept.append(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}")
    return _cut("".join(kept), longest, longest * _CAPITAL)


def _cut(text: str, longest: int, room: float) -> str:
    wide = width(text, size=1)
    if wide > room:
        longest = min(longest, max(3, int(len(text) * room / wide)))
    if len(text) <= longest:
        return text
    tail = (longest - 1) // 2
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def width(text: str, size: float = 12) -> float:
    """Return about how wide a text is in any font."""
    return size * sum(map(_em, text))


def _em(char: str) -> float:
    kind = category(char)
    if kind.startswith("M"):
        return 0
    if kind == "So" or east_asian_width(char) in "WF":
        return _WIDE
    return _CAPITAL if char.isupper() or char in "mw@%" else _OTHER


@dataclass(frozen=True)
class Chart:
    """A drawing with its title, description and the table of its figures."""

    title: str
    about: str
    width: float
    height: float
    body: Markup
    columns: Sequence[str] = ()
    table: Sequence[Sequence[str]] = ()

    def __html__(self) -> str:
        """Return the SVG for a page, which has the style and shows title and description."""
        box = f"0 0 {self.width:g} {self.height:g}"
        return tag("svg", *self._named(), self.body, viewBox=box, class_="chart", role="group")

    def svg(self, *, hover: bool = True) -> str:
        """Return the SVG as a file of its own."""
        told = [
            one
            for sentence in self.about.splitlines()
            for one in wrap(sentence, int(self.width / 6), break_on_hyphens=False)
        ]
        high = _ABOVE + self.height + _BELOW + _LINE * len(told)
        size = {"width": self.width, "height": high}
        below = self.height + _BELOW
        body = self.body if hover else Markup(re.sub("<title>.*?</title>", "", self.body))  # noqa: S704
        return tag(
            "svg",
            *self._named(),
            tag("style", Markup(STYLE)),  # noqa: S704
            tag("rect", x=0, y=-_ABOVE, class_="ground", **size),
            label(12, -18, self.title, "title"),
            body,
            *(label(12, below + _LINE * at, one, "quiet") for at, one in enumerate(told)),
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 {-_ABOVE} {self.width:g} {high:g}",
            class_="chart",
            role="img",
            **size,
        )

    def markdown(self) -> str:
        """Return a Markdown image that needs no file."""
        content = b64encode(self.svg(hover=False).encode()).decode()
        if len(content) > _MOST_CHARACTERS:
            return f"{plain(self.title)}: too large for this page; see reports/plots/."
        return f"![{plain(self.title)}](data:image/svg+xml;base64,{content})"

    def _named(self) -> Iterable[Markup]:
        return tag("title", self.title), tag("desc", self.about)


def empty(title: str, words: str, about: str = "") -> Chart:
    """Return a chart without data, which says why there is none."""
    return Chart(title, about or words, 720, 120, label(360, 60, words, "quiet middle"))


class Frame(NamedTuple):
    """The area that points are in; places are shares of it."""

    left: float
    top: float
    right: float
    bottom: float

    def x(self, share: float) -> float:
        return self.left + share * (self.right - self.left)

    def y(self, share: float) -> float:
        return self.bottom - share * (self.bottom - self.top)

    def across(self, marks: Iterable[tuple[float, str]]) -> Iterator[Markup]:
        """Yield vertical lines with their texts below."""
        for share, words in marks:
            yield line(self.x(share), self.top, self.x(share), self.bottom, "grid")
            yield label(self.x(share), self.bottom + 12, words, "quiet middle")

    def up(self, marks: Iterable[tuple[float, str]]) -> Iterator[Markup]:
        """Yield horizontal lines with their texts on the left."""
        for share, words in marks:
            yield line(self.left, self.y(share), self.right, self.y(share), "grid")
            yield label(self.left - 6, self.y(share), words, "quiet end")

    def range(self, x: float, row: Row, scale: "Scale") -> Iterator[Markup]:
        """Yield the interval of a row's accuracy."""
        if known(row["accuracy_low"]) and known(row["accuracy_high"]):
            low, high = (self.y(scale.place(row[f"accuracy_{end}"])) for end in ("low", "high"))
            yield line(x, low, x, high, "range")


class Scale(NamedTuple):
    """A range of values, linear."""

    low: float
    high: float

    @classmethod
    def over(cls, found: Sequence[Row]) -> "Scale":
        """Return the range of all intervals with some air, never too narrow."""
        ends = [row[f"accuracy{end}"] for row in found for end in ("", "_low", "_high")]
        low, high = min(filter(known, ends)), max(filter(known, ends))
        air = max(0.06 * (high - low), (0.2 - (high - low)) / 2, 0.01)
        return cls(max(low - air, 0), min(high + air, 1))

    def place(self, value: float) -> float:
        return (value - self.low) / (self.high - self.low)

    def marks(self) -> list[tuple[float, str]]:
        step = next((one for one in _STEPS if (self.high - self.low) / one <= MOST_MARKS), 0.5)
        values = [step * at for at in range(ceil(self.low / step), floor(self.high / step) + 1)]
        return [(self.place(value), f"{value:.0%}") for value in values]


def known(value: Any) -> bool:
    return value is not None and isfinite(value)


def or_else(value: Any, default: float) -> float:
    return value if known(value) else default


def joined(parts: Iterable[Markup]) -> Markup:
    return Markup("\n").join(parts)


def usd(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:.2g}"


def exact(row: Row) -> str:
    of = f"{shown(row['model'])}: " if row.get("model") else ""
    ends = row["accuracy_low"], row["accuracy_high"]
    interval = f" ({ends[0]:.1%} to {ends[1]:.1%})" if all(map(known, ends)) else ""
    return f"{of}{row['accuracy']:.1%}{interval}"


def titled(title: str, found: Sequence[Row]) -> str:
    """Return the title, which never hides that models are simulated."""
    simulated = [bool(row.get("simulated")) for row in found]
    if not any(simulated):
        return title
    which = "SIMULATED models" if all(simulated) else "some models are SIMULATED"
    return f"{title} ({which}: their skill is invented)"


def name_of(row: Row, found: Sequence[Row], longest: int = 42) -> str:
    """Return the model and, in brackets, what sets its row apart."""
    remarks = []
    if row.get("simulated") and not all(one.get("simulated") for one in found):
        remarks.append("simulated")
    if row.get("scope") == "text":
        remarks.append("text only")
    if row.get("experiment", "default") != "default":
        remarks.append(shown(row["experiment"], 20))
    behind = f" ({', '.join(remarks)})" if remarks else ""
    return shown(row["model"], longest - len(behind) // 2) + behind


def place_names(
    frame: Frame, places: Sequence[tuple[float, float]], names: Sequence[str], front: Sequence[int]
) -> list[Markup]:
    """Return the names that fit beside their points: the front's first, then the best."""
    taken = [(x - 7, y - 7, x + 7, y + 7) for x, y in places]
    for (x, y), (next_x, next_y) in pairwise(places[one] for one in front):
        taken += [(x, y - 2, next_x, y + 2), (next_x - 2, next_y, next_x + 2, y)]
    named = []
    for at in dict.fromkeys([*front, *range(len(names))]):
        (x, y), wide = places[at], width(names[at])
        for left, middle in _beside(x, y, wide):
            box = left - 1, middle - 7, left + wide + 1, middle + 7
            inside = frame.left < box[0] and box[2] < frame.right and frame.top < box[1]
            if inside and box[3] < frame.bottom and not any(_overlap(box, one) for one in taken):
                taken.append(box)
                named.append(label(left, middle, names[at], "name"))
                break
    return named


def _beside(x: float, y: float, wide: float) -> list[tuple[float, float]]:
    """Return where a name may begin, and its middle height: right, left, above or below."""
    sides = [(x + 10, y + down) for down in (0, -9, 9)]
    sides += [(x - 10 - wide, y + down) for down in (0, -9, 9)]
    return [*sides, (x - wide / 2, y - 16), (x - wide / 2, y + 16)]


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def decades(scale: Scale) -> list[tuple[float, str]]:
    """Return 1, 2 and 5 of each decade, or decades alone where there are many."""
    powers = range(floor(scale.low), ceil(scale.high) + 1)
    marks: list[float] = []
    for steps in ((1, 2, 5), (1,)):
        values = [step * 10.0**power for power in powers for step in steps]
        marks = [one for one in values if scale.low <= log10(one) <= scale.high]
        if len(marks) <= MOST_MARKS:
            break
    marks = marks[:: ceil(len(marks) / MOST_MARKS) or 1]
    return [(scale.place(log10(one)), usd(one)) for one in marks]
