"""Killed with -9 in the middle: nothing is lost, nothing is asked twice, the end is the same."""

import random
import signal
import subprocess
import sys
import time
from contextlib import chdir, nullcontext, suppress
from pathlib import Path
from typing import Any

import dagster as dg
import duckdb
import pytest

from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.replies import question_hash
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import JUDGED, PREDICTIONS, Journal, Stream
from eval_pipeline.journal.files import JSONL
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current, load_benchmark
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.project import ROOT, call, environment
from eval_pipeline_tests.test_pipeline import Graph
from eval_pipeline_tests.webserver import wait_for

MODEL = "demo/average"
MOMENTS = 5
"""How often a run is killed, each time at another moment; `make bench` does it more often."""
SAMPLE = ROOT / "data" / "sample" / "questions.jsonl"


def a_project_with(gateway: DemoGateway, folder: Path) -> Settings:
    folder.mkdir()
    (folder / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    return settings_in(
        folder,
        suites=[{"name": "sample", "path": SAMPLE}],
        gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
        selection={"models": [MODEL]},
        concurrency={"num_workers": 4},
        judge={"num_workers": 4},
    )


def lines_of(journal: Journal, stream: Stream[Any]) -> int:
    """How many records there are; what is not packed yet is only counted, to be quick."""
    with suppress(FileNotFoundError):  # packed meanwhile
        files = journal.files(stream)
        if all(path.suffix == JSONL for path in files):
            return sum(path.read_bytes().count(b"\n") for path in files)
    return len(list(journal.read(stream)))


def stop_after(
    lines: int, stream: Stream[Any], settings: Settings, how: signal.Signals, *command: str
) -> str:
    """Runs a command, sends it a signal once so many lines are journalled; returns what it said."""
    journal = Journal(settings.journal)
    process = subprocess.Popen(
        command, cwd=settings.root, env=environment(), stderr=subprocess.PIPE, text=True
    )
    end = time.monotonic() + 150
    while lines_of(journal, stream) < lines:
        assert process.poll() is None, "it ended before it could be stopped"
        assert time.monotonic() < end, "it journalled too little"
        time.sleep(0.05)
    process.send_signal(how)
    return process.communicate(timeout=150)[1]


def results(settings: Settings) -> list[tuple[object, ...]]:
    with duckdb.connect(str(settings.database), read_only=True) as db:
        return db.sql(
            "select judged.item_id, answer, score "
            "from judged join predictions using (prediction_id) order by all"
        ).fetchall()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """A project in which the same run was never stopped."""
    folder = tmp_path_factory.mktemp("undisturbed")
    sample = load_benchmark(settings_in(folder, suites=[{"name": "sample", "path": SAMPLE}]))
    with DemoGateway(tuple(sample.items.values())) as gateway:
        settings = a_project_with(gateway, folder / "project")
        assert call(settings.root, "evals run").returncode == 0
    return settings


@pytest.mark.parametrize("stream", [PREDICTIONS, JUDGED], ids=["predicting", "judging"])
def test_a_killed_run_goes_on_where_it_was(
    tmp_path: Path, stream: Stream[Any], undisturbed: Settings
) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    questions = {key.item_id: item.question for key, item in sample.items.items()}
    with DemoGateway(tuple(sample.items.values()), faults=Faults(latency_s=0.05)) as gateway:
        settings = a_project_with(gateway, tmp_path / "killed")
        journal = Journal(settings.journal)
        stop_after(40, stream, settings, signal.SIGKILL, "evals", "run")
        answered = [one.item_id for one in journal.read(PREDICTIONS)]
        judged = len(list(journal.read(JUDGED)))
        gateway.misbehave(Faults())
        asked_of_judge = gateway.requests["demo/judge"]

        done = call(settings.root, "evals run")

        assert done.returncode == 0, done.stderr
        times = [gateway.seen[MODEL, question_hash(questions[item])] for item in answered]
        assert set(times) == {1}
        assert gateway.requests["demo/judge"] - asked_of_judge == len(questions) - judged
        assert sorted(one.item_id for one in journal.read(PREDICTIONS)) == sorted(questions)
        assert results(settings) == results(undisturbed)


def a_child(settings: Settings, run_id: str, log: Path | None = None) -> subprocess.Popen[str]:
    """Both stages in a process of its own, which says to the log, or to a pipe, what it does."""
    with nullcontext(subprocess.PIPE) if log is None else log.open("w") as stderr:
        return subprocess.Popen(
            [sys.executable, "-m", "eval_pipeline_tests.child", MODEL, run_id],
            cwd=settings.root,
            env=environment() | {"PYTHONPATH": str(ROOT)},
            stderr=stderr,
            text=True,
        )


def records(journal: Journal) -> int:
    return lines_of(journal, PREDICTIONS) + lines_of(journal, JUDGED)


def results_of(journal: Journal) -> list[tuple[object, ...]]:
    predictions = {one.prediction_id: one for one in journal.read(PREDICTIONS)}
    judged = list(journal.read(JUDGED))
    assert len(judged) == len({one.prediction_id for one in judged}) == len(predictions)
    return sorted(
        (one.item_id, predictions[one.prediction_id].answer, one.score, one.outcome)
        for one in judged
    )


def test_killed_at_any_moment_nothing_is_lost_and_nothing_known_is_asked_again(
    tmp_path: Path,
) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    chance = random.Random(time.time_ns())
    with DemoGateway(tuple(sample.items.values()), faults=Faults(latency_s=0.1)) as gateway:
        settings = a_project_with(gateway, tmp_path / "killed")
        journal = Journal(settings.journal)
        asked_when_known: dict[str, int] = {}
        for number in range(MOMENTS):
            goal = records(journal) + chance.randint(1, 40)
            process = a_child(settings, f"run-{number}")
            while records(journal) < goal and process.poll() is None:
                time.sleep(chance.uniform(0, 0.02))
            process.kill()
            process.communicate()
            for one in journal.read(PREDICTIONS):
                question = question_hash(sample.items[one.key].question)
                asked_when_known.setdefault(one.item_id, gateway.seen[MODEL, question])
        known = set(asked_when_known)

        finished = a_child(settings, "run-last")
        said = finished.communicate(timeout=150)[1]

        assert finished.returncode == 0, said
        asked = {
            key.item_id: gateway.seen[MODEL, question_hash(item.question)]
            for key, item in sample.items.items()
            if not item.image
        }
        assert {item: asked[item] for item in known} == asked_when_known
        assert len({one.run_id for one in journal.read(PREDICTIONS)}) == 1
        # What was on its way when the process died, or came in the tenth of a second before, is
        # all that is paid for twice: no more than two replies of each worker.
        assert sum(asked.values()) - len(asked) <= MOMENTS * 2 * settings.concurrency.num_workers
        undisturbed = a_project_with(gateway, tmp_path / "undisturbed")
        a_child(undisturbed, "run-0").communicate(timeout=150)
        assert results_of(journal) == results_of(Journal(undisturbed.journal))


def test_two_processes_on_one_model_never_ask_the_same_twice(tmp_path: Path) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    logs = [tmp_path / "first.log", tmp_path / "second.log"]
    # So slow that whoever begins first is still at it when the other one comes.
    with DemoGateway(tuple(sample.items.values()), faults=Faults(latency_s=2)) as gateway:
        settings = a_project_with(gateway, tmp_path / "shared")
        items = current(Journal(settings.journal), settings).items.values()
        planned = sum(1 for item in items if not item.image)

        first, second = (a_child(settings, f"run-{log.stem}", log) for log in logs)
        wait_for(lambda: any("Waiting for" in log.read_text() for log in logs), 60)
        gateway.misbehave(Faults())
        ended = [process.wait(150) for process in (first, second)]

    said = [log.read_text() for log in logs]
    assert ended == [0, 0], said
    assert gateway.requests[MODEL] == gateway.requests["demo/judge"] == planned
    assert any(
        f"Waiting for the predictions of {MODEL}: process {holder.pid} on " in words
        for holder, words in ((first, said[1]), (second, said[0]))
    )


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_ends_in_order_and_shows_what_it_has(
    tmp_path: Path, how: signal.Signals
) -> None:
    sample = load_benchmark(settings_in(tmp_path, suites=[{"name": "sample", "path": SAMPLE}]))
    with DemoGateway(tuple(sample.items.values()), faults=Faults(latency_s=0.2)) as gateway:
        settings = a_project_with(gateway, tmp_path / "interrupted")
        with chdir(settings.root), dg.DagsterInstance.from_config(".") as instance:
            assert Graph(settings, instance).run("model_catalog").success
        command = f"dagster asset materialize --select predictions --partition {MODEL}".split()

        said = stop_after(20, PREDICTIONS, settings, how, *command)

    kept = len(list(Journal(settings.journal).read(PREDICTIONS)))
    assert "Task was destroyed" not in said
    assert "never retrieved" not in said
    with duckdb.connect(str(settings.database), read_only=True) as db:
        assert db.sql("select count(*) from predictions").fetchall() == [(kept,)]
