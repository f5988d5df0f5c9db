"""Many models in one process: whether a slow or a failing one slows the others."""

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from bench.measuring import reported
from bench.options import Options
from bench.project import environment, write_settings
from bench.server import model_names
from bench.serving import ModelSeen, load_server
from bench.tables import Cell, Table

MODELS, AT_ONCE, QUESTIONS, LATENCY_S, SLOW_S = 20, 25, 250, 0.5, 2.0
SLOW, FAILING, *WELL = model_names(MODELS)
COLUMNS = (
    "",
    "ideal s",
    "first done s",
    "median s",
    "last done s",
    "last x ideal",
    "last x alone",
    "most at once",
)


@dataclass(frozen=True)
class Asked:
    """When asking began, and what the server saw of each model."""

    started_at: float
    seen: Mapping[str, ModelSeen]

    def ended(self, models: Sequence[str]) -> list[float]:
        """How many seconds after the beginning each model had its last reply."""
        return [self.seen[model].last_at - self.started_at for model in models]

    @property
    def most_at_once(self) -> int:
        return max(log.most_at_once for log in self.seen.values())


def section(options: Options) -> list[Table]:
    """The well-behaved models alone, together, and together with a slow and a failing one."""
    questions = max(AT_ONCE, options.scaled(QUESTIONS))
    ideal = math.ceil(questions / AT_ONCE) * LATENCY_S
    alone = _ask(WELL[:1], questions, options)
    together = _ask(WELL, questions, options)
    troubled = _ask([SLOW, FAILING, *WELL], questions, options)
    (alone_s,) = alone.ended(WELL[:1])
    rows = (
        _row("one model alone", alone, WELL[:1], ideal, alone_s),
        _row(f"{len(WELL)} models together", together, WELL, ideal, alone_s),
        _row(
            f"the same {len(WELL)} beside a slow and a failing one", troubled, WELL, ideal, alone_s
        ),
    )
    title = (
        f"Fairness: {MODELS} models in one process, {AT_ONCE} at a time each, {questions:,} "
        f"questions, {LATENCY_S * 1000:.0f} ms (slow: {SLOW_S:g} s, failing: 500)"
    )
    return [Table(title, COLUMNS, rows)]


def _ask(models: Sequence[str], questions: int, options: Options) -> Asked:
    options.say(f"Fairness: {len(models)} model(s)")
    slow, failing = [f"{SLOW}={SLOW_S}"], [f"{FAILING}=500"]
    with (
        options.project_copy(questions, MODELS) as project,
        load_server(latency_s=LATENCY_S, models=MODELS, slow=slow, failing=failing) as server,
    ):
        write_settings(project, base_url=server.base_url, at_once=AT_ONCE)
        command = [sys.executable, "-m", "bench.engine", *models]
        taken = reported(command, project, environment())
        return Asked(taken.started_at, server.seen())


def _row(
    name: str, asked: Asked, models: Sequence[str], ideal: float, alone_s: float
) -> tuple[Cell, ...]:
    ended = asked.ended(models)
    last = max(ended)
    times = (ideal, min(ended), median(ended), last, last / ideal, last / alone_s)
    return (name, *times, asked.most_at_once)
