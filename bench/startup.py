"""How long it takes from the start of a process until its first request arrives."""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from bench.load import MODEL
from bench.measuring import BenchError, started
from bench.options import Options
from bench.project import PREDICTIONS, a_copy, environment, run, write_settings
from bench.serving import LoadServer, load_server
from bench.tables import Cell, Table

QUESTIONS, DONE = 50_000, 49_000
COLUMNS = ("", "first request after s", "best s")
COMMANDS = {"dagster asset materialize": (*PREDICTIONS, MODEL), "evals run": ("evals", "run")}
LONGEST_S = 300.0


def section(options: Options) -> list[Table]:
    """A fresh run, and one of which nearly everything is done."""
    questions, done = options.scaled(QUESTIONS), options.scaled(DONE)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        resumed = _resumed(options, Path(folder) / "resumed", done)
        cases = {
            f"fresh, {options.scaled(1_000):,} questions": options.project(options.scaled(1_000)),
            f"fresh, {questions:,} questions": options.project(questions),
            f"resumed, {done:,} of {questions:,} done": resumed,
        }
        rows = [
            _row(f"{name}: {case}", command, project, options)
            for case, project in cases.items()
            for name, command in COMMANDS.items()
        ]
    return [Table("From process start to the first request", COLUMNS, tuple(rows))]


def _resumed(options: Options, folder: Path, done: int) -> Path:
    """A project whose run was opened by the engine itself, in vain, and then filled."""
    project = a_copy(options.project(options.scaled(QUESTIONS)), folder)
    options.say(f"fabricating {done:,} answers")
    with load_server(failing=[f"{MODEL}=401"]) as server:
        write_settings(project, base_url=server.base_url, at_once=1)
        run(project, sys.executable, "-m", "bench.engine", MODEL)
    run(project, sys.executable, "-m", "bench.fabricate", "answers", MODEL, str(done))
    return project


def _row(title: str, command: Sequence[str], project: Path, options: Options) -> tuple[Cell, ...]:
    waited = []
    for repetition in range(options.repetitions):
        options.say(f"Start-up: {title}, {repetition + 1} of {options.repetitions}")
        with (
            tempfile.TemporaryDirectory(dir=options.folder) as folder,
            load_server(latency_s=0.2) as server,
        ):
            copy = a_copy(project, Path(folder) / "project")
            write_settings(copy, base_url=server.base_url, at_once=100)
            waited.append(_first_request_after(command, copy, server))
    return (title, median(waited), min(waited))


def _first_request_after(command: Sequence[str], project: Path, server: LoadServer) -> float:
    started_at = time.time()
    with started(command, project, environment()) as process:
        while not server.total():
            if process.poll() is not None or time.time() - started_at > LONGEST_S:
                raise BenchError(f"{' '.join(command)} made no request")
            time.sleep(0.05)
        return server.first_at() - started_at
