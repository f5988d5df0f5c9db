"""All that is shown at a moment: a header and the models that have room; loaded with the bars."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from eval_pipeline.cli.progress.lines import Cell, doing, model_lines, state_word
from eval_pipeline.cli.progress.wording import (
    begun,
    clock,
    dollars,
    how_fast,
    in_one_line,
    percent,
)
from eval_pipeline.progress import Glance, Phase, Stage, Standing, State

WIDEST = 140
ROOM_FOR_KEYS = 3
"""Terminals show ^C where the cursor is: in a full line it would begin another one."""
LINES_FOR_THE_LOG = 3
SIMULATED = "*"
BETWEEN = " · "
NEEDED_MOST = (
    State.WORKING,
    State.STOPPED,
    State.CUT_SHORT,
    State.WAITING,
    State.UNTOUCHED,
    State.DONE,
)


def frame(glance: Glance, width: int, height: int | None = None) -> Text:
    """The lines for a terminal of that size; without a height, all of them."""
    width = min(width, WIDEST) - ROOM_FOR_KEYS
    lines = [_header(glance, width)]
    if glance.phase is Phase.WORKING:
        rows = len(glance.standings) if height is None else height - LINES_FOR_THE_LOG - 1
        shown, hidden = chosen(glance.standings, max(2, rows))
        lines += model_lines(shown, _names(shown, glance), width)
        lines += [[(begun(_more(hidden), width), "dim")]] if hidden else []
    cut = [Text.assemble(*line) for line in lines]
    for line in cut:
        line.truncate(width, overflow="crop")
    return Text("\n").join(cut)


class Chosen(NamedTuple):
    """The models that have a line each, and the others."""

    shown: Sequence[Standing]
    hidden: Sequence[Standing]


def chosen(standings: Sequence[Standing], rows: int) -> Chosen:
    """All in their order if they have room; else those first about which something is done."""
    if len(standings) <= rows:
        return Chosen(standings, ())
    by_need = sorted(standings, key=lambda one: NEEDED_MOST.index(one.state))
    # The last line tells of the others.
    return Chosen(by_need[: rows - 1], by_need[rows - 1 :])


def _more(hidden: Iterable[Standing]) -> str:
    states = Counter(map(state_word, hidden))
    counts = ", ".join(f"{count} {state}" for state, count in states.items())
    return f"… and {states.total()} more ({counts})"


def _names(standings: Iterable[Standing], glance: Glance) -> list[str]:
    """Where all are simulated, the header says so."""
    marked = not _all_simulated(glance)
    return [
        in_one_line(one.model) + (SIMULATED if marked and one.simulated else "")
        for one in standings
    ]


class _Part(NamedTuple):
    """A part of the header; those whose number is lowest are the first to have room."""

    need: int
    text: str
    # What to add if there is room for that too.
    more: str = ""


def _header(glance: Glance, width: int) -> list[Cell]:
    """What is being done, how far all of it is, and what it costs."""
    title = begun(_title(glance), width)
    parts = [part for part in _parts(glance) if part.text]
    room, told = width - cell_len(title), {}
    for part in sorted(parts):
        texts = (BETWEEN + part.text + part.more, BETWEEN + part.text)
        told[part] = next((text for text in texts if cell_len(text) <= room), "")
        room -= cell_len(told[part])
    return [(title, "bold"), ("".join(told[part] for part in parts), "")]


def _title(glance: Glance) -> str:
    stage, standings = glance.stage, glance.standings
    if stage is None or glance.phase is not Phase.WORKING:
        return str(glance.phase)
    some = any(one.simulated for one in standings)
    told = ", simulated" if _all_simulated(glance) else f" ({SIMULATED} simulated)" if some else ""
    models = "1 model" if len(standings) == 1 else f"{len(standings)} models"
    stopped = "stopped " if stage.over else ""
    return f"{stopped}{doing(standings[0])} {models}{_by(stage)}{told}"


def _by(stage: Stage) -> str:
    """Who judges; several are named in the lines."""
    return f" by {in_one_line(stage.judges[0])}" if len(stage.judges) == 1 else ""


def _all_simulated(glance: Glance) -> bool:
    judges = glance.stage.judges if glance.stage else ()
    simulated = glance.stage.simulated if glance.stage else ()
    return all(one.simulated for one in glance.standings) and all(
        judge in simulated for judge in judges
    )


def _parts(glance: Glance) -> list[_Part]:
    elapsed = _Part(4, clock(glance.elapsed_s))
    in_all = _Part(6, f"{dollars(glance.launch_usd)} in all" if glance.launch_usd else "")
    if glance.stage is None or glance.phase is not Phase.WORKING:
        return [elapsed, in_all]
    cost = sum(one.cost_usd for one in glance.standings)
    return [
        _Part(1, _count(glance.standings)),
        _Part(5, _rate(glance.standings)),
        _Part(2, _left(glance)),
        elapsed,
        _Part(3, dollars(cost), _estimate(glance.standings)),
        in_all if glance.launch_usd > cost else _Part(6, ""),
        _Part(7, _budget(glance.stage)),
    ]


def _count(standings: Sequence[Standing]) -> str:
    done, planned = sum(one.done for one in standings), sum(one.planned for one in standings)
    return f"{done}/{planned} {percent(done, planned)}" if planned else ""


def _rate(standings: Iterable[Standing]) -> str:
    rates = [one.rate for one in standings if one.state is State.WORKING and one.rate]
    return how_fast(sum(rates)) if rates else ""


def _left(glance: Glance) -> str:
    """Nobody knows how long those take that wait."""
    if glance.left_s is None:
        return ""
    more = any(one.state is State.WAITING for one in glance.standings)
    return f"{clock(glance.left_s)}{'+' if more else ''} left"


def _estimate(standings: Iterable[Standing]) -> str:
    estimates = [one.estimated_usd for one in standings if one.estimated_usd]
    return f" of about {dollars(sum(estimates))}" if estimates else ""


def _budget(stage: Stage) -> str:
    limits = (
        ("run", stage.budget.usd_per_run),
        ("model", stage.budget.usd_per_model),
        ("day", stage.budget.usd_per_day),
    )
    told = [f"{dollars(usd)} per {purpose}" for purpose, usd in limits if usd is not None]
    return f"budget {', '.join(told)}" if told else ""
