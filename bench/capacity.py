"""What limits a cluster at which size: simulated with what was measured, checked by real runs."""

import queue
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from multiprocessing import Process, Queue

from bench.measuring import Taken, measured
from bench.options import Options
from bench.project import environment, write_settings
from bench.server import model_names
from bench.serving import load_server
from bench.simulation import Costs, Outcome, Plan, simulated
from bench.tables import Cell, Table

REAL = Plan(models=6, items=300, requests_at_once=20, latency_s=0.1, spread=0.0, models_at_once=20)
"""What fits here: a few models, evaluated by one and by two processes."""
FEW, MANY = 10, 1_000
PROCESSES = (1, 2)
SIZES = ((100, 1_000), (1_000, 1_000), (10_000, 10_000))
WORKERS = (1, 10, 100)
CORES_PER_WORKER = 1.0
PER_RUN = (1, 100)
HOUR = 3600.0
OF_REAL = ("processes", "measured s", "simulated s", "off by", "processors to be had")
OF_COSTS = ("what", "measured")
OF_SIZES = (
    *("models x items", "models per run", "workers", "hours", "without coalescing"),
    *("builds", "longest wait s", "gateway", "processors", "publishing", "limited by", "GB"),
)


def section(options: Options, landing: Table, deriving: Table) -> Iterator[Table]:
    """The costs, how far the simulation is off, and its answers."""
    costs = replace(from_tables(landing, deriving), **_of_runs(options))
    yield Table(
        "What the simulation reckons with, CPU s and MB",
        OF_COSTS,
        tuple((name, f"{value:.3g}") for name, value in vars(costs).items()),
    )
    yield _checked(options, costs)
    yield answers(costs)


def from_tables(landing: Table, deriving: Table) -> Costs:
    """What a file takes to be built, from the growth with results and with models."""
    cpu, memory = _line(landing, "CPU s"), _line(landing, "peak MB")
    pairs = list(deriving.column("pairs").values())[:-1]
    # All but the comparisons grows with models, and not with their pairs.
    seconds = list(deriving.column("CPU s").values())[:-1]
    pair_s = _slope([(float(x or 0), float(y or 0)) for x, y in zip(pairs, seconds, strict=True)])
    return Costs(
        publish_s=cpu[0],
        publish_result_s=cpu[1],
        pair_s=pair_s,
        memory_mb=memory[0],
        memory_result_mb=memory[1],
    )


def _line(table: Table, column: str) -> tuple[float, float]:
    """The least, and how much each result adds: from the first and the last size."""
    found = [
        (float(size.replace(",", "")), float(str(value)))
        for size, value in list(table.column(column).items())[:-1]
    ]
    slope = _slope(found)
    return max(0.0, found[0][1] - slope * found[0][0]), slope


def _slope(points: Sequence[tuple[float, float]]) -> float:
    (first_x, first_y), (last_x, last_y) = points[0], points[-1]
    return max(0.0, (last_y - first_y) / (last_x - first_x)) if last_x > first_x else 0.0


def _of_runs(options: Options) -> dict[str, float]:
    """What a run takes of the processors besides: at all, and for each item."""
    few, many = (_evaluated(options, count).cpu_s for count in (FEW, MANY))
    # Asked and judged.
    item_s = max(0.0, many - few) / (MANY - FEW) / 2
    # The file is built in it, too.
    return {"start_s": max(0.1, few - 2 * FEW * item_s), "item_s": item_s}


def _evaluated(options: Options, items: int) -> Taken:
    options.say(f"Capacity: what a run over {items:,} items takes of the processors")
    with options.project_copy(items) as project, load_server() as server:
        write_settings(project, base_url=server.base_url, at_once=50)
        return measured(["evals", "job", "evaluate", "-m", *model_names(1)], project, environment())


def _checked(options: Options, costs: Costs) -> Table:
    """The same runs for real and simulated."""
    # In so small a file there is little to build: it is part of what a run takes anyway.
    small, rows = replace(costs, publish_s=0.0), list[tuple[Cell, ...]]()
    for processes in PROCESSES:
        options.say(f"Capacity: {REAL.models} models, {processes} process(es) at a time")
        before = available_cores()
        took = _really(options, processes)
        cores = (before + available_cores()) / 2
        plan = replace(REAL, workers=processes, cores=cores)
        expected = simulated(plan, small).seconds
        rows.append((str(processes), took, expected, f"{expected / took - 1:+.0%}", cores))
    title = f"{REAL.models} models x {REAL.items} items, {REAL.latency_s:g} s per reply"
    return Table(f"The simulation against real runs: {title}", OF_REAL, tuple(rows))


def _really(options: Options, processes: int) -> float:
    """Each model by a command of its own, so many of them at a time."""
    names: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in model_names(REAL.models):
        names.put(name)
    with (
        options.project_copy(REAL.items, REAL.models) as project,
        load_server(latency_s=REAL.latency_s, models=REAL.models) as server,
    ):
        write_settings(project, base_url=server.base_url, at_once=REAL.requests_at_once)

        def work() -> None:
            while not names.empty():
                measured(["evals", "job", "evaluate", "-m", names.get()], project, environment())

        began = time.perf_counter()
        threads = [threading.Thread(target=work) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return time.perf_counter() - began


def available_cores(seconds: float = 1.0, processes: int = 2) -> float:
    """How many processors busy processes get here: others may be at work on this machine."""
    told: Queue[float] = Queue()
    busy = [Process(target=_spin, args=(seconds, told)) for _ in range(processes)]
    for one in busy:
        one.start()
    got = sum(told.get() for _ in busy)
    for one in busy:
        one.join()
    return got


def _spin(seconds: float, told: "Queue[float]") -> None:
    began, cpu = time.perf_counter(), time.process_time()
    while (gone := time.perf_counter() - began) < seconds:
        pass
    told.put((time.process_time() - cpu) / gone)


def answers(costs: Costs, sizes: Sequence[tuple[int, int]] = SIZES) -> Table:
    """What limits at which size, and with how many workers."""
    rows = [
        _answer(Plan(models, items, workers, per_run, CORES_PER_WORKER * workers), costs)
        for models, items in sizes
        for per_run in PER_RUN
        for workers in WORKERS
    ]
    plan = Plan(1, 1)
    gateway = f"{plan.models_at_once} models x {plan.requests_at_once} requests at a time"
    title = f"Simulated: a gateway that takes {gateway}, {plan.latency_s:g} s per reply"
    return Table(title, OF_SIZES, tuple(rows), "A processor per worker. GB: to build the file.")


def _answer(plan: Plan, costs: Costs) -> tuple[Cell, ...]:
    found, alone = simulated(plan, costs), simulated(replace(plan, coalesce=False), costs)
    return (
        f"{plan.models:,} x {plan.items:,}",
        plan.models_per_run,
        plan.workers,
        found.seconds / HOUR,
        alone.seconds / HOUR,
        found.builds,
        found.longest_wait_s,
        *_shares(found),
        found.limit,
        found.memory_mb / 1000,
    )


def _shares(found: Outcome) -> Iterator[str]:
    return (f"{found.shares[name]:.0%}" for name in ("gateway", "processors", "publishing"))
