"""Progress of a launch on stderr: bars at a terminal, plain log lines anywhere else."""

import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Self, TextIO

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleDimensions, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from eval_pipeline.cli.output import json_lines
from eval_pipeline.evaluation.progress import (
    Follower,
    Glance,
    Phase,
    Stage,
    Standing,
    State,
    Watch,
    watching,
)
from eval_pipeline.logs import LOGGER, write_lines
from eval_pipeline.settings.sections import Budget
from eval_pipeline.text import printable

PERIODIC = "progress %s"
"""The log line that repeats every few seconds what the bars show."""
WIDEST, ROOM_FOR_KEYS, LINES_FOR_THE_LOG = 140, 3, 3
"""Terminals show ^C where the cursor is: in a full line it would begin another one."""
NARROW, MEDIUM, WIDE = 45, 75, 110
"""Columns of the terminal from which on percentages, and rates and estimates, have room."""
SMALLEST_USD, SMALL_USD, LARGE_USD = 0.001, 0.1, 100
FEW_A_SECOND, MANY_A_SECOND = 0.1, 9.95
STYLES = {  # those that need attention most come first
    State.WORKING: "cyan",
    State.STOPPED: "bold red",
    State.CUT_SHORT: "yellow",
    State.WAITING: "dim",
    State.UNTOUCHED: "dim",
    State.DONE: "green",
}
WITHOUT_BARS = {State.STOPPED, State.WAITING, State.UNTOUCHED}
log = logging.getLogger(__name__)


@contextmanager
def following(*, as_json: bool = False) -> Iterator[None]:
    """Show the log of the stages and, at a terminal, how far each model is.

    Ask questions before: within, the terminal's last lines belong to the bars.
    """
    with ExitStack() as stack:
        logger = logging.getLogger(LOGGER)
        stack.callback(logger.setLevel, logger.level)
        logger.setLevel(logging.INFO)
        if (lines := json_lines()) is not None:
            write_lines(lines)
        else:
            handler: logging.Handler = PlainLines()
            if not as_json and _is_interactive():
                handler = stack.enter_context(Display(stack.enter_context(watching())))
            logger.addHandler(handler)
            stack.callback(logger.removeHandler, handler)
        yield


class PlainLines(logging.StreamHandler[TextIO]):
    """The log on stderr, without anything that a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def _is_interactive() -> bool:
    """Return whether a terminal can move its cursor; CI may have one, but only records it."""
    watched = sys.stderr.isatty() and not os.environ.get("CI")
    return watched and Console(stderr=True).is_interactive


class Display(logging.Handler):
    """The bars, and the log above them; the bars stay only if the work was cut short."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        # A descriptor of its own: within a step, Dagster redirects stderr to a file.
        self._terminal = os.fdopen(
            os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace"
        )
        # Names and messages come from elsewhere: nothing in them is markup.
        self._console = Console(file=self._terminal, markup=False, emoji=False, highlight=False)
        self._follower = Follower(watch, time.monotonic())
        self._all_lines, self._can_show = False, True
        self._live = Live(
            console=self._console,
            transient=True,
            # What goes to a file must not come out here.
            redirect_stdout=sys.stdout.isatty(),
            get_renderable=self._frame,
        )

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        # The terminal may be gone, which is no reason to fail.
        with suppress(OSError), self._terminal:
            if error is not None and self._can_show and self._look().phase is Phase.WORKING:
                self._all_lines, self._live.transient = True, False
            self._live.stop()

    def emit(self, record: logging.LogRecord) -> None:
        """Print the message above the bars, which repeat the periodic ones anyway."""
        if record.msg != PERIODIC:
            style = "yellow" if record.levelno >= logging.WARNING else ""
            with suppress(OSError):
                self._console.print(Text(printable(self.format(record)), style))

    def _frame(self) -> RenderableType:
        if not self._can_show:
            return Text()
        try:
            width, height = os.get_terminal_size(self._terminal.fileno())
            self._console.size = ConsoleDimensions(width, height)
            return frame(self._look(), width, None if self._all_lines else height)
        except Exception:  # a display that fails must not end the work
            self._can_show = False
            log.exception("How far it is could not be shown.")
            return Text()

    def _look(self) -> Glance:
        return self._follower.look(time.monotonic())


def frame(glance: Glance, width: int, height: int | None = None) -> Group:
    """Return the lines for a terminal of that size; without a height, all of them."""
    width = min(width, WIDEST) - ROOM_FOR_KEYS
    lines: list[RenderableType] = [_header(glance, width)]
    if glance.phase is not Phase.WORKING:
        return Group(*lines)
    shown, hidden = list(glance.standings), list[Standing]()
    rows = len(shown) if height is None else max(2, height - LINES_FOR_THE_LOG - 1)
    if len(shown) > rows:
        by_need = sorted(shown, key=lambda one: list(STYLES).index(one.state))
        shown, hidden = by_need[: rows - 1], by_need[rows - 1 :]
    names = _names(shown, width, mark="" if _is_simulated(glance) else "*")
    if with_bars := [one for one in shown if one.state not in WITHOUT_BARS]:
        lines.append(_bars(with_bars, width, names))
    lines += [_words(one, names[one.model], width) for one in shown if one.state in WITHOUT_BARS]
    if hidden:
        states = Counter(_state(one) for one in hidden)
        counts = ", ".join(f"{count} {state}" for state, count in states.items())
        more = Text(f"… and {len(hidden)} more ({counts})", "dim")
        more.truncate(width, overflow="ellipsis")
        lines.append(more)
    return Group(*lines)


def _header(glance: Glance, width: int) -> Text:
    """Return stage, progress and cost of all models; the least important parts come last."""
    elapsed, in_all = clock(glance.elapsed_s), f"{dollars(glance.launch_usd)} in all"
    if glance.stage is None or glance.phase is not Phase.WORKING:
        parts = [str(glance.phase), elapsed, in_all if glance.launch_usd else ""]
    else:
        parts = [_title(glance, glance.stage), *_totals(glance, elapsed, width)]
        if glance.launch_usd > sum(one.cost_usd for one in glance.standings):
            parts.append(in_all)
        parts.append(_budget(glance.stage.budget))
    text = Text(parts[0], "bold")
    text.truncate(width, overflow="ellipsis")
    for part in filter(None, parts[1:]):
        if text.cell_len + cell_len(part) + 3 <= width:
            text.append(f" · {part}", "not bold")
    return text


def _title(glance: Glance, stage: Stage) -> str:
    standings, judges = glance.standings, stage.judges
    models = "1 model" if len(standings) == 1 else f"{len(standings)} models"
    by = f" by {_in_one_line(judges[0])}" if len(judges) == 1 else ""
    some = any(one.simulated for one in standings)
    simulated = ", simulated" if _is_simulated(glance) else " (* simulated)" if some else ""
    return f"{'stopped ' if stage.over else ''}{_doing(standings[0])} {models}{by}{simulated}"


def _totals(glance: Glance, elapsed: str, width: int) -> Iterator[str]:
    standings = glance.standings
    done, planned = sum(one.done for one in standings), sum(one.planned for one in standings)
    yield f"{done}/{planned} {percent(done, planned)}" if planned else ""
    if glance.left_s is not None:  # how long the waiting ones take is unknown
        waiting = any(one.state is State.WAITING for one in standings)
        yield f"{clock(glance.left_s)}{'+' if waiting else ''} left"
    yield elapsed
    estimate = sum(one.estimated_usd or 0 for one in standings)
    of = f" of about {dollars(estimate)}" if estimate and width >= MEDIUM else ""
    yield f"{dollars(sum(one.cost_usd for one in standings))}{of}"
    rates = [one.rate for one in standings if one.state is State.WORKING and one.rate]
    yield how_fast(sum(rates)) if rates else ""


def _budget(budget: Budget) -> str:
    limits = {"run": budget.usd_per_run, "model": budget.usd_per_model, "day": budget.usd_per_day}
    parts = [f"{dollars(usd)} per {name}" for name, usd in limits.items() if usd is not None]
    return f"budget {', '.join(parts)}" if parts else ""


def _is_simulated(glance: Glance) -> bool:
    """Return whether all models and judges are, so that the header says it once."""
    stage = glance.stage
    judged_really = stage is not None and not set(stage.judges).issubset(stage.simulated)
    return not judged_really and all(one.simulated for one in glance.standings)


def _names(standings: Sequence[Standing], width: int, mark: str) -> dict[str, str]:
    """Return the names as far as they have room, all of one width."""
    room, names = max(6, min(40, width // (5 if width < MEDIUM else 4))), dict[str, str]()
    for one in standings:
        simulated = mark if one.simulated else ""
        names[one.model] = shortened(_in_one_line(one.model), room - len(simulated)) + simulated
    widest = max(map(cell_len, names.values()))
    return {model: set_cell_size(name, widest) for model, name in names.items()}


def _bars(standings: Sequence[Standing], width: int, names: Mapping[str, str]) -> Table:
    """Return a line per model: name, bar, counts, time and cost, and what failed."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.width = width
    rows = [[names[one.model], *_cells(one, width)] for one in standings]
    for cells in zip(*rows, strict=True):
        is_text = isinstance(cells[0], Text)
        table.add_column(justify="left" if is_text or not table.columns else "right", no_wrap=True)
    table.columns[-1].overflow, table.columns[-1].ratio = "ellipsis", 1
    for row in rows:
        table.add_row(*row)
    return table


def _cells(one: Standing, width: int) -> list[RenderableType]:
    style = STYLES[one.state]
    left = one.left_s if one.state is State.WORKING else None
    count = f"{one.done}/{one.planned}"
    state = Text(_state(one) if left is None else f"{clock(left)} left", style, justify="right")
    if width < NARROW:
        return [count, state]
    bar = ProgressBar(
        max(1, one.planned),
        one.done,
        width=6 if width < MEDIUM else 12 if width < WIDE else 24,
        complete_style=style,
        finished_style=style,
    )
    if width < MEDIUM:
        return [bar, count, state, dollars(one.cost_usd), _failures(one, in_all=True)]
    share, more = percent(one.done, one.planned), list[RenderableType]()
    if width >= WIDE:
        of = f"of {dollars(one.estimated_usd)}" if one.estimated_usd else ""
        more = [Text(of, "dim"), how_fast(one.rate) if left is not None and one.rate else ""]
    return [bar, count, share, state, dollars(one.cost_usd), *more, _failures(one)]


def _failures(one: Standing, *, in_all: bool = False) -> Text:
    """Return failures by kind: red to be asked again, yellow the model's own."""
    kinds = [(f"{count} {each}", each.is_result) for each, count in one.failures.items()]
    if in_all and len(kinds) > 1:
        kinds = [(f"{sum(one.failures.values())} failed", kinds[0][1])]
    return Text(", ").join(Text(text, "yellow" if own else "red") for text, own in kinds)


def _words(one: Standing, name: str, width: int) -> Text:
    """Return the line of a model nothing is done about: why, and how far it came."""
    line = Text.assemble(name, "  ", (_state(one), STYLES[one.state]))
    if one.stopped is not None:
        done = f"{one.done}/{one.planned}" if one.planned else ""
        cost = dollars(one.cost_usd) if one.cost_usd else ""
        came = ", ".join(filter(None, (done, cost, _failures(one).plain)))
        line.append(f": {_in_one_line(one.stopped)} {came}")
    line.truncate(width, overflow="ellipsis")
    return line


def _doing(standing: Standing) -> str:
    return standing.verb.split()[0].removesuffix("ed") + "ing"


def _state(standing: Standing) -> str:
    return _doing(standing) if standing.state is State.WORKING else str(standing.state)


def _in_one_line(text: str) -> str:
    return " ".join(printable(text).split())


def shortened(name: str, width: int) -> str:
    """Return the name, without its middle where it is too long."""
    if cell_len(name) <= width:
        return name
    end = max(0, width - 1) // 2
    beginning, ending = set_cell_size(name, width - 1 - end), set_cell_size(name[::-1], end)
    return f"{beginning.rstrip()}…{ending.rstrip()[::-1]}"


def clock(seconds: float) -> str:
    """Return a time as clocks show it; of days, no minutes."""
    minutes, second = divmod(round(seconds), 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    if days:
        return f"{days} d {hour} h"
    return f"{hour}:{minute:02}:{second:02}" if hour else f"{minute}:{second:02}"


def how_fast(rate: float) -> str:
    """Return a rate per second, or per minute where it is low."""
    if rate < FEW_A_SECOND:
        return f"{rate * 60:.1f}/min"
    return f"{rate:.0f}/s" if rate >= MANY_A_SECOND else f"{rate:.1f}/s"


def dollars(usd: float) -> str:
    """Return an amount with the digits that matter."""
    if 0 < usd < SMALLEST_USD:
        return f"<${SMALLEST_USD}"
    if usd >= LARGE_USD:
        return f"${usd:.0f}"
    return f"${usd:.3f}" if 0 < usd < SMALL_USD else f"${usd:.2f}"


def percent(done: int, planned: int) -> str:
    """Return a share rounded down: only what is done is 100 %."""
    return f"{100 * done // planned}%" if planned else ""
