"""One line per model: name, bar and columns, as many as have room; loaded with the bars."""

from collections.abc import Mapping, Sequence

from rich.cells import cell_len

from eval_pipeline.cli.progress.wording import (
    begun,
    clock,
    dollars,
    how_fast,
    in_one_line,
    padded,
    percent,
)
from eval_pipeline.progress import Standing, State
from eval_pipeline.reporting.names import told_apart

Cell = tuple[str, str]
"""A text and its style."""
COLUMNS = ("state", "count", "percent", "rate", "left", "state or left", "cost", "estimate")
LEFT_ALIGNED = {"state", "estimate"}
GAP = "  "
ROOMY = {"model": 20, "bar": 12, "failures": 16}
TIGHT = {"model": 11, "bar": 6, "failures": 9}
LARGEST = {"model": 40, "bar": 30}
LEFT_OUT = (
    ({"state or left"}, ROOMY),
    ({"state or left", "estimate"}, ROOMY),
    ({"state or left", "estimate", "rate"}, ROOMY),
    ({"state or left", "estimate", "rate", "percent"}, ROOMY),
    ({"state", "left", "estimate", "rate", "percent"}, TIGHT),
    ({"state", "left", "estimate", "rate", "percent", "cost"}, TIGHT),
    ({"state", "left", "estimate", "rate", "percent", "cost", "bar"}, TIGHT),
)
"""Columns that there is no room for, and how wide the flexible ones must be at least."""
STYLES = {
    State.WORKING: "cyan",
    State.STOPPED: "bold red",
    State.CUT_SHORT: "yellow",
    State.WAITING: "dim",
    State.UNTOUCHED: "dim",
    State.DONE: "green",
}
ONLY_WORDS = {State.STOPPED, State.WAITING, State.UNTOUCHED}
"""Models without columns: their lines say why nothing is done about them."""


def model_lines(
    standings: Sequence[Standing], names: Sequence[str], width: int
) -> list[list[Cell]]:
    """The columns below each other; what has no room is left out in all lines."""
    rows = [columns_of(one) for one in standings]
    wanted = {
        column: max((cell_len(row[column][0]) for row in rows if row), default=0)
        for column in COLUMNS
    }
    wanted["model"] = min(LARGEST["model"], max(map(cell_len, names)))
    wanted["failures"] = max(_length(_failures(one)) for one in standings)
    wanted["bar"] = LARGEST["bar"]
    widths = fitted({column: room for column, room in wanted.items() if room}, width)
    short = told_apart(names, widths["model"])
    return [
        _line(one, short[name], row, widths, width)
        for one, name, row in zip(standings, names, rows, strict=True)
    ]


def doing(standing: Standing) -> str:
    """What is being done to what will have been asked or judged."""
    return standing.verb.split()[0].removesuffix("ed") + "ing"


def state_word(standing: Standing) -> str:
    """Its state, and of those at work what is being done."""
    return doing(standing) if standing.state is State.WORKING else str(standing.state)


def columns_of(standing: Standing) -> dict[str, Cell]:
    """What is told of a model that is or was worked on."""
    one, digits = standing, len(str(standing.planned))
    if one.state in ONLY_WORDS:
        return {}
    working, state = one.state is State.WORKING, (state_word(one), STYLES[one.state])
    left = f"{clock(one.left_s)} left" if working and one.left_s is not None else ""
    return {
        "state": state,
        "count": (f"{one.done:>{digits}}/{one.planned}", ""),
        "percent": (percent(one.done, one.planned), ""),
        "rate": (how_fast(one.rate) if working and one.rate else "", ""),
        "left": (left, ""),
        "state or left": (left, "") if left else state,
        "cost": (dollars(one.cost_usd), ""),
        "estimate": (f"of {dollars(one.estimated_usd)}" if one.estimated_usd else "", "dim"),
    }


def fitted(wanted: Mapping[str, int], width: int) -> dict[str, int]:
    """How wide each column is that has room."""
    for left_out, least in LEFT_OUT:
        kept = {column: room for column, room in wanted.items() if column not in left_out}
        if _taken(_at_least(kept, least)) <= width:
            break
    widths = _at_least(kept, TIGHT)
    bars_last = sorted(kept, key=lambda column: column == "bar")
    for most in (_at_least(kept, ROOMY), kept):
        for column in bars_last:
            spare = max(0, width - _taken(widths))
            widths[column] += min(spare, most[column] - widths[column])
    return widths


def _at_least(wanted: Mapping[str, int], least: Mapping[str, int]) -> dict[str, int]:
    """With the flexible columns no wider than this."""
    return {column: min(room, least.get(column, room)) for column, room in wanted.items()}


def _taken(widths: Mapping[str, int]) -> int:
    return sum(widths.values()) + len(GAP) * (len(widths) - 1)


def _length(cells: Sequence[Cell]) -> int:
    return sum(cell_len(text) for text, _ in cells)


def _line(
    standing: Standing, name: str, row: Mapping[str, Cell], widths: Mapping[str, int], width: int
) -> list[Cell]:
    line: list[Cell] = [(padded(name, widths["model"]), "")]
    line += _bar(standing, widths.get("bar", 0))
    for column in (column for column in COLUMNS if row and column in widths):
        text, style = row[column]
        right = column not in LEFT_ALIGNED
        line += [(GAP, ""), (padded(text, widths[column], right=right), style)]
    room = width - _length(line) - len(GAP)
    said = _failed(standing, room) if row else _words(standing, room)
    return [*line, (GAP, ""), *said] if said else line


def _bar(standing: Standing, length: int) -> list[Cell]:
    if not length:
        return []
    full = min(length, length * standing.done // standing.planned) if standing.planned else 0
    return [(GAP, ""), ("━" * full, STYLES[standing.state]), ("─" * (length - full), "dim")]


def _failures(standing: Standing) -> list[Cell]:
    """By kind: red what has to be asked again, yellow what the model itself has failed at."""
    return [
        (
            f"{', ' if place else ''}{one.count} {one.outcome}",
            "yellow" if one.outcome.is_result else "red",
        )
        for place, one in enumerate(standing.failures)
    ]


def _failed(standing: Standing, room: int) -> list[Cell]:
    """As many kinds as have room and how many there are besides; else the number of all."""
    failures = _failures(standing)
    for kinds in range(len(failures), 0, -1):
        hidden = len(failures) - kinds
        more: list[Cell] = [(f", +{hidden}", "dim")] if hidden else []
        if _length(fitting := [*failures[:kinds], *more]) <= room:
            return fitting
    total = sum(one.count for one in standing.failures)
    return [(begun(f"{total} failed", room), style) for _, style in failures[:1]]


def _words(standing: Standing, room: int) -> list[Cell]:
    """Why nothing is done about the model, and then how far it came."""
    state = (state_word(standing), STYLES[standing.state])
    if standing.stopped is None:
        return [state]
    came = [f"{standing.done}/{standing.planned}"] if standing.planned else []
    came += [dollars(standing.cost_usd)] if standing.cost_usd else []
    came += [f"{one.count} {one.outcome}" for one in standing.failures]
    why = f": {in_one_line(standing.stopped)} {', '.join(came)}".rstrip()
    return [state, (begun(why, room - len(state[0])), "")]
