"""Killed with -9 and materialized again: what is lost, what is asked again, how it ends."""

import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import duckdb

from bench.load import MODEL
from bench.measuring import BenchError, started
from bench.options import Options
from bench.project import PREDICTIONS as MATERIALIZE
from bench.project import environment, run, write_settings
from bench.serving import LoadServer, load_server
from bench.tables import Cell, Table
from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.records.prediction import Prediction

QUESTIONS, LATENCY_S, AT_ONCE, LONGEST_S = 2_000, 0.1, 50, 300.0
COMMAND = (*MATERIALIZE, MODEL)
COLUMNS = (
    "killed at",
    "requests before",
    "replies before",
    "journalled",
    "lost",
    "repeated",
    "under way, asked again",
    "journalled twice",
    "equal result",
)
NOTE = (
    "Journalled: answers in the journal at the kill. Lost: those that are gone after the second "
    "materialization. Repeated: items with a journalled answer that were asked again. Under way: "
    "items asked before the kill whose answer had not arrived, or waited for its sync; asking them "
    "again is right."
)
Rows = list[tuple[object, ...]]


@dataclass(frozen=True)
class Crashed:
    """What there was at the kill, and what there is after going on."""

    before: list[Prediction]
    replies_before: int
    asked_before: dict[str, int]
    after: list[Prediction]
    asked_after: dict[str, int]
    rows: Rows

    def cells(self, undisturbed: Rows) -> tuple[Cell, ...]:
        kept = {one.prediction_id for one in self.after}
        known = {one.item_id for one in self.before}
        again = {item for item, n in self.asked_after.items() if n > self.asked_before.get(item, 0)}
        times = Counter(one.item_id for one in self.after)
        return (
            sum(self.asked_before.values()),
            self.replies_before,
            len(self.before),
            sum(one.prediction_id not in kept for one in self.before),
            len(again & known),
            len((again & self.asked_before.keys()) - known),
            sum(count > 1 for count in times.values()),
            "yes" if self.rows == undisturbed else "NO",
        )


def section(options: Options) -> list[Table]:
    """One row per kill point, spread over a run."""
    questions = max(2 * AT_ONCE, options.scaled(QUESTIONS))
    options.say("Crash: an undisturbed run")
    with options.project_copy(questions) as project, load_server() as server:
        write_settings(project, base_url=server.base_url, at_once=AT_ONCE)
        run(project, *COMMAND)
        undisturbed = _results(project)
    rows = []
    for point in kill_points(options.kill_points):
        options.say(f"Crash: killed at {point:.0%}")
        crashed = _crash(round(point * questions), questions, options)
        rows.append((f"{point:.0%}", *crashed.cells(undisturbed)))
    title = f"Killed with -9, {questions:,} questions, {AT_ONCE} at a time"
    return [Table(title, COLUMNS, tuple(rows), NOTE)]


def kill_points(count: int) -> list[float]:
    """So many shares of a run, spread evenly: 10, 30, 50, 70 and 90 % for five."""
    return [(2 * number + 1) / (2 * count) for number in range(count)]


def _crash(after_requests: int, questions: int, options: Options) -> Crashed:
    with options.project_copy(questions) as project, load_server(latency_s=LATENCY_S) as server:
        write_settings(project, base_url=server.base_url, at_once=AT_ONCE)
        _kill_after(after_requests, project, server)
        at_kill, before = server.seen()[MODEL], _answered(project)
        run(project, *COMMAND)
        after, asked_after = _answered(project), server.seen()[MODEL].counts
        return Crashed(
            before, at_kill.replies, at_kill.counts, after, asked_after, _results(project)
        )


def _kill_after(requests: int, project: Path, server: LoadServer) -> None:
    end = time.monotonic() + LONGEST_S
    with started(COMMAND, project, environment()) as process:
        while server.total() < requests:
            if process.poll() is not None or time.monotonic() > end:
                raise BenchError("the command could not be killed in time")
            time.sleep(0.005)


def _answered(project: Path) -> list[Prediction]:
    read = Journal(project / "data" / "journal").read(PREDICTIONS, MODEL)
    return [prediction for prediction in read if prediction.outcome.is_result]


def _results(project: Path) -> Rows:
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        query = "select item_id, answer, outcome from predictions order by all"
        return db.sql(query).fetchall()
