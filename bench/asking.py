"""How fast questions are asked: the ideal, raw clients, this engine, and its peers where there."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.contestants import RAW, Measure, contestants
from bench.load import LOADS, MODEL, Load
from bench.measuring import BenchError, Taken
from bench.options import Options
from bench.serving import load_server
from bench.tables import Cell, Table

COLUMNS = (
    "",
    "wall s",
    "best s",
    "x ideal",
    "best x",
    "requests/s",
    "share of raw",
    "best share",
    "CPU ms/request",
    "peak MB",
    "first to last s",
)
NOTE = (
    "Medians, and the best of all repetitions. Share of raw: requests/s against raw aiohttp in the "
    "same run. First to last: from the first request to the last reply, as the server saw it."
)


@dataclass(frozen=True)
class Measured:
    """One repetition: what the client took, and how long the server saw it at work."""

    taken: Taken
    span_s: float


def section(options: Options, loads: Sequence[Load] = LOADS) -> Iterator[Table]:
    """One table per load."""
    return (_table(_scaled(load, options), options) for load in loads)


def _scaled(load: Load, options: Options) -> Load:
    return Load(max(load.at_once, options.scaled(load.questions)), load.latency_s, load.at_once)


def _table(load: Load, options: Options) -> Table:
    everybody = contestants(options)
    here = {name: measure for name, measure in everybody.items() if measure}
    found, failed = measure_all(here, load, options)
    rows = [_ideal(load)]
    for name in everybody:
        if found.get(name):
            rows.append(_row(name, found[name], load, found[RAW]))
        else:
            rows.append(_cells(name, "failed" if name in failed else "not installed"))
    trouble = "".join(f"\n{name} failed: {reason}" for name, reason in failed.items())
    return Table(load.title, COLUMNS, tuple(rows), NOTE + trouble, failed=bool(failed))


def measure_all(
    here: Mapping[str, Measure], load: Load, options: Options
) -> tuple[dict[str, list[Measured]], dict[str, str]]:
    """Repetitions take turns, so that a noisy minute hits everybody alike."""
    found: dict[str, list[Measured]] = {name: [] for name in here}
    failed: dict[str, str] = {}
    for number in range(options.repetitions):
        for name, measure in here.items():
            if name in failed:
                continue
            options.say(f"{load.title}: {name}, {number + 1} of {options.repetitions}")
            try:
                found[name].append(repetition(measure, load, options))
            except BenchError as error:
                failed[name] = str(error)
    return found, failed


def repetition(measure: Measure, load: Load, options: Options) -> Measured:
    """One repetition, which counts only if every question was asked, and once."""
    with load_server(latency_s=load.latency_s) as server:
        taken = measure(load, server, options)
        seen = server.seen().get(MODEL)
        if seen is None or not len(seen.counts) == seen.requests == load.questions:
            times = seen.requests if seen else 0
            raise BenchError(f"it made {times} requests for {load.questions} questions")
        return Measured(taken, seen.last_at - seen.first_at)


def _ideal(load: Load) -> tuple[Cell, ...]:
    if not load.ideal_s:
        return _cells("ideal", 0.0)
    rate = load.questions / load.ideal_s
    return _cells("ideal", load.ideal_s, load.ideal_s, 1.0, 1.0, rate)


def _cells(*cells: Cell) -> tuple[Cell, ...]:
    return (*cells, *(None for _ in COLUMNS[len(cells) :]))


def _row(
    name: str, found: Sequence[Measured], load: Load, raw: Sequence[Measured]
) -> tuple[Cell, ...]:
    walls = [one.taken.wall_s for one in found]
    raw_walls = [one.taken.wall_s for one in raw]
    ideal = load.ideal_s or None
    return (
        name,
        median(walls),
        min(walls),
        median(walls) / ideal if ideal else None,
        min(walls) / ideal if ideal else None,
        load.questions / median(walls),
        median(raw_walls) / median(walls) if raw_walls else None,
        min(raw_walls) / min(walls) if raw_walls else None,
        median(one.taken.cpu_s for one in found) * 1000 / load.questions,
        max(one.taken.peak_mb for one in found),
        median(one.span_s for one in found),
    )
