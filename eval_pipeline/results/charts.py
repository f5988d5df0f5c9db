"""Charts of the results: accuracy, cost, calibration, categories and history."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from math import ceil, floor, isnan, log10
from typing import Any, TypeVar

import duckdb
from markupsafe import Markup

from eval_pipeline.results.queries import query, query_text, rows
from eval_pipeline.results.svg import (
    Chart,
    Frame,
    Row,
    Scale,
    decades,
    dot,
    empty,
    exact,
    joined,
    known,
    label,
    line,
    name_of,
    or_else,
    place_names,
    shown,
    tag,
    titled,
    usd,
    width,
)
from eval_pipeline.text import listed

_T = TypeVar("_T")

_NOTHING = "Nothing judged yet"
_DASH = "\N{EN DASH}"
_ROW, _TALL = 20, 25
_COLUMNS = 75, 125, 170
_LONGEST_TIES, _MOST_PANELS, _ACROSS = 24, 30, 5
_LONGEST_CATEGORY, _LONGEST_POINT, _LONGEST_PANEL = 26, 30, 19
_MOST_LISTED = 20
_CELL, _SHADES, _FIRST_DARK = 34, 8, 4


_SHARES = Scale(0, 1)


def accuracy_chart(found: Sequence[Row], most: int | None = None) -> Chart:
    """Return a point and an interval per row, best first, with rank range and tied groups."""
    title = titled("Accuracy", found)
    best = sorted(found, key=lambda row: (-or_else(row["accuracy"], -1), name_of(row, found)))
    if not any(known(row["accuracy"]) for row in found):
        return empty(title, _NOTHING)
    about = "Point: accuracy. Line: its 95% interval. Rank: the places the data allow."
    if any(row["ties"] for row in found):
        about += " Models that share a letter are not significantly different."
    best, about = _first(best, most, about)
    names = [name_of(row, found) for row in best]
    left = 20 + max(map(width, names))
    frame = Frame(left, 24, left + 420, 24.0 + _ROW * len(best))
    ties = _aligned([row["ties"] or "" for row in best])
    cells = [_cells(row, name, tied) for row, name, tied in zip(best, names, ties, strict=True)]
    scale = Scale.over(best)
    drawn = list(_accuracy_axis(frame, scale, len(best)))
    for down, (row, line_) in enumerate(zip(best, cells, strict=True)):
        drawn += _accuracy_row(frame, scale, row, line_, frame.top + _ROW * (down + 0.5))
    high = max(width(one, 8) for one in [*ties, "tied"])
    columns = ("model", "accuracy", "judged", "rank", "tied")
    return Chart(
        title, about, frame.right + 200 + high, frame.bottom + 24, joined(drawn), columns, cells
    )


def _accuracy_axis(frame: Frame, scale: Scale, count: int) -> Iterator[Markup]:
    yield from frame.across(scale.marks())
    if count > _TALL:
        for share, words in scale.marks():
            yield label(frame.x(share), 10, words, "quiet middle")
    for away, words in zip(_COLUMNS, ("accuracy", "judged", "rank"), strict=True):
        yield label(frame.right + away, 10, words, "quiet end")
    yield label(frame.right + 185, 10, "tied", "quiet")


def _accuracy_row(
    frame: Frame, scale: Scale, row: Row, cells: Sequence[str], y: float
) -> Iterator[Markup]:
    yield label(frame.left - 10, y, cells[0], "end")
    for away, words in zip(_COLUMNS, cells[1:4], strict=True):
        yield label(frame.right + away, y, words, "end")
    yield label(frame.right + 185, y, cells[4], "ties")
    if known(row["accuracy"]):
        low, high = (
            frame.x(scale.place(or_else(row[f"accuracy_{end}"], row["accuracy"])))
            for end in ("low", "high")
        )
        yield line(low, y, high, y, "range")
        look = "hollow" if row["simulated"] else ""
        yield dot(frame.x(scale.place(row["accuracy"])), y, look, about=exact(row))


def _cells(row: Row, name: str, tied: str) -> tuple[str, ...]:
    low, high = row["rank_low"], row["rank_high"]
    ends = dict.fromkeys(f"{end:.0f}" for end in (low, high) if known(end))
    accuracy = f"{row['accuracy']:.1%}" if known(row["accuracy"]) else _DASH
    return name, accuracy, f"{or_else(row['judged'], 0):,.0f}", _DASH.join(ends), tied


def _aligned(ties: Sequence[str]) -> list[str]:
    """Return each letter in its own column, so that a tied group is a vertical line."""
    letters = sorted(set("".join(ties)))
    if len(letters) > _LONGEST_TIES or not all(map(str.isalpha, letters)):
        return [shown(one, _LONGEST_TIES) for one in ties]
    return ["".join(one if one in tied else "\u00a0" for one in letters) for tied in ties]


def cost_chart(found: Sequence[Row], links: Sequence[str] = ()) -> Chart:
    """Return accuracy against cost on a logarithmic scale, with the Pareto front."""
    title = titled("Accuracy and cost", found)
    pairs = list(zip(found, links or [""] * len(found), strict=True))
    judged = [pair for pair in pairs if known(pair[0]["accuracy"])]
    drawn = [pair for pair in judged if or_else(pair[0]["cost_usd"], 0) > 0]
    left_out = _left_out([row for row, _ in judged if not or_else(row["cost_usd"], 0) > 0], found)
    if not drawn:
        words = "No costs are known" if judged else _NOTHING
        return empty(title, words, "\n".join(left_out))
    drawn.sort(key=lambda pair: (-pair[0]["accuracy"], name_of(pair[0], found)))
    best = [row for row, _ in drawn]
    front = _front(best)
    about = ["Diamonds: the Pareto front; no other model is at least as good for less."]
    if 0 < sum(bool(row["simulated"]) for row in best) < len(best):
        about[0] += " Simulated models are left out of this comparison."
    names = [name_of(row, found, _LONGEST_POINT) for row in best]
    body, unnamed = _cost_body(best, names, [link for _, link in drawn], front)
    if unnamed:
        about.append(f"{unnamed} points have no room for their name; the table names them.")
    table = [
        (name, f"{row['accuracy']:.1%}", usd(row["cost_usd"]))
        for name, row in zip(names, best, strict=True)
    ]
    columns = ("model", "accuracy", "USD per run")
    return Chart(title, "\n".join([*about, *left_out]), 960, 500, body, columns, table)


def _cost_body(
    best: Sequence[Row], names: Sequence[str], links: Sequence[str], front: Sequence[int]
) -> tuple[Markup, int]:
    frame, scale = Frame(56, 16, 940, 450), Scale.over(best)
    costs = [log10(row["cost_usd"]) for row in best]
    margin = max((max(costs) - min(costs)) * 0.06, 0.1)
    across = Scale(min(costs) - margin, max(costs) + margin)
    places = [
        (frame.x(across.place(cost)), frame.y(scale.place(row["accuracy"])))
        for cost, row in zip(costs, best, strict=True)
    ]
    drawn = [*frame.across(decades(across)), *frame.up(scale.marks())]
    drawn.append(label(frame.right, 488, "cost in USD per run (log scale)", "quiet end"))
    for (x, _), row in zip(places, best, strict=True):
        drawn += frame.range(x, row, scale)
    drawn.append(_stairs([places[one] for one in front]))
    order = [*(at for at in range(len(best)) if at not in set(front)), *front]
    for at in order:
        x, y = places[at]
        hollow = "hollow" if best[at]["simulated"] else ""
        look = f"best {hollow}".strip() if at in front else hollow
        about = f"{exact(best[at])} for {usd(best[at]['cost_usd'])}"
        drawn.append(dot(x, y, look, about=about, link=links[at]))
    named = place_names(frame, places, names, front)
    return joined([*drawn, *named]), len(best) - len(named)


def _stairs(places: Sequence[tuple[float, float]]) -> Markup:
    x, y = places[0]
    path = f"M{x:.1f} {y:.1f}" + "".join(f"H{x:.1f}V{y:.1f}" for x, y in places[1:])
    return tag("path", d=path, class_="step")


def _left_out(without: Sequence[Row], found: Sequence[Row]) -> list[str]:
    nothing = sorted(name_of(row, found) for row in without if row["cost_usd"] == 0)
    unknown = sorted(name_of(row, found) for row in without if row["cost_usd"] != 0)
    groups = {"Cost nothing": nothing, "Cost unknown": unknown}
    return [
        f"{why}, so not drawn: {listed(names, _MOST_LISTED)}."
        for why, names in groups.items()
        if names
    ]


def _front(best: Sequence[Row]) -> list[int]:
    """Return the rows on the front, cheapest first; invented skill does not beat real models."""
    real = not all(row["simulated"] for row in best)
    costs = [float("nan") if real and row["simulated"] else row["cost_usd"] for row in best]
    return pareto_front(costs, [row["accuracy"] for row in best])


def pareto_front(costs: Sequence[float], accuracies: Sequence[float]) -> list[int]:
    """Return the places of those that no other equals or beats for the same or less, by cost."""
    pairs = enumerate(zip(costs, accuracies, strict=True))
    compared = [one for one, pair in pairs if not any(map(isnan, pair))]
    front: list[int] = []
    for one in sorted(compared, key=lambda one: (costs[one], -accuracies[one])):
        best = front[-1] if front else None
        if (
            best is None
            or accuracies[one] > accuracies[best]
            or (costs[one], accuracies[one]) == (costs[best], accuracies[best])
        ):
            front.append(one)
    return front


def calibration_chart(bins: Sequence[Row]) -> Chart:
    """Return a panel per model, best first: accuracy at each stated confidence."""
    title = titled("Calibration", bins)
    used = [row for row in bins if row["size"] and known(row["accuracy"])]
    if not used:
        return empty(title, _NOTHING)
    about = (
        "On the dashed line a model is right as often as it says; below it, it is too sure. "
        "Line: 95% interval. Size of a point: number of answers."
    )
    models, about = _first(_by_model(used, "size"), _MOST_PANELS, about)
    across = min(_ACROSS, len(models))
    side = 320.0 if len(models) == 1 else 136.0
    largest = max(row["size"] for row in used)
    drawn: list[Markup] = []
    table: list[tuple[str, ...]] = []
    for at, group in enumerate(models):
        left, top = 48 + (side + 52) * (at % across), 24 + (side + 64) * (at // across)
        name = name_of(group[0], used, _LONGEST_PANEL if len(models) > 1 else 42)
        drawn += _panel(Frame(left, top, left + side, top + side), name, group, largest)
        table += [
            (name, f"{row['mean_confidence']:.0%}", f"{row['accuracy']:.1%}", f"{row['size']:,}")
            for row in group
        ]
    columns = ("model", "stated confidence", "accuracy", "answers")
    wide, high = (side + 52) * max(across, 2) + 24, (side + 64) * ceil(len(models) / across) + 8
    return Chart(title, about, wide, high, joined(drawn), columns, table)


def _panel(frame: Frame, name: str, group: Sequence[Row], largest: float) -> Iterator[Markup]:
    marks = [(at / 2, f"{at / 2:.0%}") for at in range(3)]
    yield label(frame.left, frame.top - 14, name)
    yield from frame.across(marks)
    yield from frame.up(marks)
    yield label(frame.x(0.5), frame.bottom + 27, "stated confidence", "quiet middle")
    yield line(frame.x(0), frame.y(0), frame.x(1), frame.y(1), "even")
    for row in sorted(group, key=lambda row: row["mean_confidence"]):
        x = frame.x(row["mean_confidence"])
        yield from frame.range(x, row, _SHARES)
        about = f"{row['size']:,} answers, {row['mean_confidence']:.0%} sure, {exact(row)}"
        yield dot(
            x, frame.y(row["accuracy"]), about=about, r=2 + 3.5 * (row["size"] / largest) ** 0.5
        )


def category_chart(cells: Sequence[Row], most: int | None = None) -> Chart:
    """Return a heat map of accuracy, models best first; what was not judged has no colour."""
    title = titled("Accuracy by category", cells)
    used = [row for row in cells if row["judged"] and known(row["accuracy"])]
    if not used:
        return empty(title, _NOTHING)
    values = [row["accuracy"] for row in used]
    low, high = floor(min(values) * 10) / 10, ceil(max(values) * 10) / 10
    about = (
        f"Cells: accuracy in percent; darker is higher, from {low:.0%} to {high:.0%}. "
        "Dashed: nothing judged. n: how many were judged."
    )
    models, about = _first(_by_model(used, "judged"), most, about)
    categories = sorted({str(row["category"] or "no category") for row in used})
    headings = [_heading(one, used) for one in categories]
    names = [name_of(group[0], used) for group in models]
    left, top = 20 + max(map(width, names)), 24 + 0.66 * max(width(one, 11) for one in headings)
    drawn, table = [], []
    for at, one in enumerate(headings):
        turned = f"translate({left + _CELL * (at + 0.5):.1f} {top - 6:.1f}) rotate(-40)"
        drawn.append(tag("text", one, class_="quiet", transform=turned))
    for down, (name, group) in enumerate(zip(names, models, strict=True)):
        y = top + _ROW * down
        drawn.append(label(left - 10, y + _ROW / 2, name, "end"))
        by = {str(row["category"] or "no category"): row["accuracy"] for row in group}
        row = [by.get(one) for one in categories]
        for at, (value, heading) in enumerate(zip(row, headings, strict=True)):
            drawn += _cell(left + _CELL * at, y, value, (low, high), f"{name}, {heading}")
        table.append((name, *("" if value is None else f"{value:.0%}" for value in row)))
    wide = left + _CELL * len(categories) + 24 + 0.77 * width(headings[-1], 11)
    size = max(wide, 640), top + _ROW * len(models) + 8
    return Chart(title, about, *size, joined(drawn), ("model", *headings), table)


def _heading(category: str, used: Sequence[Row]) -> str:
    judged = [row["judged"] for row in used if str(row["category"] or "no category") == category]
    counts = " to ".join(f"{one:,.0f}" for one in sorted({min(judged), max(judged)}))
    return f"{shown(category, _LONGEST_CATEGORY)} (n {counts})"


def _cell(
    x: float, y: float, value: float | None, ends: tuple[float, float], where: str
) -> Iterator[Markup]:
    size = {"x": x + 1, "y": y + 1, "width": _CELL - 2, "height": _ROW - 2}
    if value is None:
        yield tag("rect", tag("title", f"{where}: nothing judged"), class_="none", **size)
        return
    share = (value - ends[0]) / max(ends[1] - ends[0], 0.1)
    shade = min(int(share * _SHADES), _SHADES - 1)
    about = tag("title", f"{where}: {value:.1%}")
    yield tag("rect", about, class_=f"h{shade}", **size)
    ink = "light" if shade >= _FIRST_DARK else "dark"
    yield label(x + _CELL / 2, y + _ROW / 2, f"{100 * value:.0f}", f"{ink} middle")


def history_chart(found: Sequence[Row], links: Sequence[str]) -> Chart | None:
    """Return the accuracy of a model's runs over time; None without any."""
    pairs = [
        (row, link)
        for row, link in zip(found, links, strict=True)
        if known(row["accuracy"]) and row["opened_at"] is not None
    ]
    if not pairs:
        return None
    moments = [row["opened_at"] for row, _ in pairs]
    margin = (max(moments) - min(moments)) / 25 or timedelta(hours=12)
    first, last = min(moments) - margin, max(moments) + margin
    form = "%Y-%m-%d" if last - first > timedelta(days=3) else "%m-%d %H:%M"
    frame = Frame(48, 12, 628, 284)
    ticks = (
        (share, f"{first + (last - first) * share:{form}}") for share in (0.1, 0.3, 0.5, 0.7, 0.9)
    )
    drawn, table = [*frame.across(ticks), *frame.up(_SHARES.marks())], []
    for row, link in pairs:
        x, when = (
            frame.x((row["opened_at"] - first) / (last - first)),
            f"{row['opened_at']:%Y-%m-%d %H:%M}",
        )
        drawn += frame.range(x, row, _SHARES)
        about = f"{when} {shown(row['experiment'])}: {exact(row)}"
        look = "" if row["complete"] else "hollow"
        drawn.append(dot(x, frame.y(row["accuracy"]), look, about=about, link=link))
        table.append((when, shown(row["experiment"]), f"{row['accuracy']:.1%}"))
    about = "Each run's accuracy with its 95% interval; hollow: not complete."
    columns = ("opened (UTC)", "experiment", "accuracy")
    return Chart("Accuracy over time", about, 640, 310, joined(drawn), columns, table)


_CHARTS: Mapping[str, tuple[str, Callable[..., Chart]]] = {
    "accuracy": ("leaderboard", accuracy_chart),
    "accuracy_and_cost": ("leaderboard", cost_chart),
    "calibration": ("reliability", calibration_chart),
    "categories": ("categories", category_chart),
}


def plot(db: duckdb.DuckDBPyConnection, *names: str, most: int | None = None) -> dict[str, Chart]:
    """Return the charts of these names, of the models on the leaderboard."""
    db.execute(f"create or replace temp view plotted as {query_text('plots/leaderboard')}")
    charts = {}
    for name in names:
        source, draw = _CHARTS[name]
        limit = {"most": most} if draw in {accuracy_chart, category_chart} else {}
        charts[name] = draw(rows(query(db, f"plots/{source}")), **limit)
    return charts


def _first(best: list[_T], most: int | None, about: str) -> tuple[list[_T], str]:
    more = len(best) - (most or len(best))
    if more <= 0:
        return best, about
    return best[:most], f"{about}\nThe best {most} are shown; left out: {more}."


def _by_model(found: Sequence[Row], counted: str) -> list[list[Row]]:
    """Return the rows of each model, best first by accuracy over all, `counted` per row."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in found:
        key = row["model"], row.get("experiment"), row.get("scope")
        groups.setdefault(key, []).append(row)

    def overall(group: list[Row]) -> float:
        weights = sum(float(row[counted]) for row in group)
        return sum(float(row["accuracy"]) * float(row[counted]) for row in group) / weights

    return sorted(groups.values(), key=lambda group: (-overall(group), name_of(group[0], found)))
