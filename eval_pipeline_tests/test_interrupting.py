"""Ctrl-C once finishes what is under way, twice stops at once; nothing is asked twice or lost."""

import asyncio
import os
import pty
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import duckdb
import pytest
from filelock import FileLock

from eval_pipeline.evaluation.grading import Slots
from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch, predict
from eval_pipeline.evaluation.rejudge import rejudge, sample_answers
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.gateways.demo.faults import FaultKind, Faults
from eval_pipeline.gateways.demo.replies import question_hash
from eval_pipeline.gateways.demo.requests import Request
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import JUDGED, PREDICTIONS, REJUDGED, RUNS, SIGHTINGS, Journal, Stream
from eval_pipeline.records.item import Item
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.run import Mode
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runtime import Halted, graceful_interrupt, run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current
from eval_pipeline_tests.builders import NOON, a_question, settings_in
from eval_pipeline_tests.project import ROOT, call, environment
from eval_pipeline_tests.stand import JUDGE, STRONG, WEAK, Stand

MODEL = "demo/average"
QUESTIONS = [
    a_question(f"q{number}", question=f"What is {number} + {number}?") for number in range(12)
]
WORKERS, BEFORE = 4, 3
"""How many are asked at once, and how many are answered before these are kept waiting."""


class KeepsWaiting(DemoGateway):
    """Answers a model's first requests, and the others only when it is told to."""

    def __init__(self, items: Sequence[Item], model: str, before: int = BEFORE) -> None:
        super().__init__(items)
        self.model, self.before = model, before
        self.go_on = threading.Event()

    @property
    def has_all_waiting(self) -> bool:
        """Whether it was asked as much as it can be while it answers nothing."""
        return self.requests[self.model] == self.before + WORKERS

    async def _fault(self, request: Request) -> FaultKind | None:
        if request.model == self.model and self.requests[self.model] > self.before:
            while not self.go_on.is_set():  # noqa: ASYNC110  (it is set in another thread)
                await asyncio.sleep(0.01)
        return await super()._fault(request)


def settings_with(gateway: DemoGateway, folder: Path, **changes: Any) -> Settings:
    return settings_in(
        folder,
        questions=QUESTIONS,
        gateways=[{"name": "demo", "kind": "demo", "base_url": gateway.base_url}],
        selection={"models": [MODEL]},
        automation={"preflight": False},
        concurrency={"num_workers": WORKERS},
        judge={"num_workers": WORKERS},
        **changes,
    )


def wait_for(true: Callable[[], bool], process: "subprocess.Popen[bytes] | None" = None) -> None:
    end = time.monotonic() + 90
    while not true():
        assert process is None or process.poll() is None, "it ended too early"
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


@dataclass
class Terminal:
    """`evals run` as at a terminal, where Ctrl-C reaches all that it has started too."""

    process: "subprocess.Popen[bytes]"
    log: Path
    screen: IO[bytes]

    @property
    def said(self) -> str:
        return self.log.read_text("utf-8")

    def ctrl_c(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def close(self) -> None:
        self.screen.close()


@contextmanager
def evals_run(settings: Settings) -> Iterator[Terminal]:
    (settings.root / "dagster.yaml").write_text((ROOT / "dagster.yaml").read_text())
    log = settings.root / "said.txt"
    ours, its = pty.openpty()
    with log.open("wb") as said, os.fdopen(ours, "rb", buffering=0) as screen:
        process = subprocess.Popen(
            ["setsid", "--ctty", "evals", "run"],
            cwd=settings.root,
            env=environment(),
            stdin=its,
            stdout=its,
            stderr=said,
        )
        os.close(its)
        try:
            yield Terminal(process, log, screen)
        finally:
            process.kill()
            process.wait()


def published(settings: Settings, table: str) -> int:
    with duckdb.connect(str(settings.database), read_only=True) as db:
        return len(db.table(table).fetchall())


def times_asked(gateway: DemoGateway, model: str = MODEL) -> dict[str, int]:
    return {one.id: gateway.seen[model, question_hash(one.question)] for one in QUESTIONS}


@pytest.mark.parametrize(
    ("interrupt", "held", "stream"),
    [
        (Terminal.ctrl_c, MODEL, PREDICTIONS),
        pytest.param(Terminal.close, "demo/judge", JUDGED, marks=pytest.mark.slow),
    ],
    ids=["Ctrl-C while asking", "the terminal is closed while judging"],
)
def test_an_interruption_finishes_what_is_under_way_and_the_next_run_asks_the_rest(
    tmp_path: Path, interrupt: Callable[[Terminal], None], held: str, stream: Stream[Any]
) -> None:
    with KeepsWaiting(QUESTIONS, held) as gateway:
        settings = settings_with(gateway, tmp_path)
        journal = Journal(settings.journal)
        with evals_run(settings) as terminal:
            wait_for(lambda: gateway.has_all_waiting, terminal.process)
            interrupt(terminal)
            wait_for(lambda: "Stopping: 4 items are under way" in terminal.said, terminal.process)
            gateway.go_on.set()
            ended_with = terminal.process.wait(60)

        assert ended_with == 130, terminal.said
        assert "Traceback" not in terminal.said
        (run,) = journal.read(RUNS)
        advice = f"To go on: evals run --resume {run.run_id[:8]}\n"
        assert terminal.said.endswith(f"Stopped. What was answered is kept. {advice}")
        assert gateway.requests[held] == BEFORE + WORKERS
        landed = list(journal.read(stream))
        assert [one.outcome for one in landed] == ["ok"] * (BEFORE + WORKERS)
        assert published(settings, stream.name) == BEFORE + WORKERS

        done = call(settings.root, "evals run")

        assert done.returncode == 0, done.stderr
        assert set(times_asked(gateway).values()) == {1}
        assert gateway.requests["demo/judge"] == len(QUESTIONS)
        assert len({one.prediction_id for one in journal.read(JUDGED)}) == len(QUESTIONS)


@pytest.mark.slow
def test_ctrl_c_twice_stops_at_once_and_keeps_what_was_answered(tmp_path: Path) -> None:
    with KeepsWaiting(QUESTIONS, MODEL) as gateway:
        settings = settings_with(gateway, tmp_path)
        journal = Journal(settings.journal)
        with evals_run(settings) as terminal:
            wait_for(lambda: gateway.has_all_waiting, terminal.process)
            terminal.ctrl_c()
            wait_for(lambda: "Stopping:" in terminal.said, terminal.process)
            terminal.ctrl_c()
            ended_with = terminal.process.wait(60)

        assert ended_with == 130, terminal.said
        assert "Traceback" not in terminal.said
        known = {one.item_id for one in journal.read(PREDICTIONS)}
        assert len(known) == published(settings, "predictions") == BEFORE
        dropped = {item for item, times in times_asked(gateway).items() if times} - known
        gateway.go_on.set()

        done = call(settings.root, "evals run")

        assert done.returncode == 0, done.stderr
        asked = times_asked(gateway)
        assert {item for item, times in asked.items() if times == 2} == dropped
        assert len(dropped) == WORKERS
        assert sum(asked.values()) == len(QUESTIONS) + WORKERS


class Interrupted(BaseException):
    """What Dagster's signal handler raises."""


@contextmanager
def interrupted(
    when: Callable[[], bool], then: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Whoever waits at the command line presses Ctrl-C then, which ends what is done within."""

    def press(*_: object) -> None:
        raise Interrupted

    def wait_and_press() -> None:
        wait_for(lambda: when() or over.is_set())
        if not over.is_set():
            os.kill(os.getpid(), signal.SIGUSR1)
            then()

    before = signal.signal(signal.SIGUSR1, press)
    person, over = threading.Thread(target=wait_and_press), threading.Event()
    try:
        with pytest.raises(Interrupted), graceful_interrupt():
            person.start()
            yield
    finally:
        over.set()
        person.join()
        signal.signal(signal.SIGUSR1, before)


def a_stand(folder: Path, gateway: DemoGateway, **changes: Any) -> Stand:
    stand = Stand(folder, gateway)
    stand.settings = settings_with(gateway, folder, **changes)
    return stand


def asking(stand: Stand, board: list[StageProgress], *models: Any) -> Any:
    benchmark = current(stand.journal, stand.settings)
    settings, journal = stand.settings, stand.journal
    launch = Launch("run-1", Mode.FIX)
    return predict(models, benchmark, launch, settings=settings, journal=journal, board=board)


def stopped_one(board: list[StageProgress]) -> Callable[[], bool]:
    return lambda: any(tally.stopped for tally in board)


def test_a_model_that_waits_for_its_turn_is_not_begun(tmp_path: Path) -> None:
    board: list[StageProgress] = []
    with KeepsWaiting(QUESTIONS, STRONG.id, before=0) as gateway:
        stand = a_stand(tmp_path, gateway)
        one_at_a_time = {"concurrency": {"num_workers": WORKERS, "max_concurrent_models": 1}}
        stand.settings = stand.settings.overridden(one_at_a_time)

        def then() -> None:
            wait_for(stopped_one(board))
            gateway.go_on.set()

        with interrupted(lambda: gateway.has_all_waiting, then):
            run_async(asking(stand, board, STRONG, WEAK))

        assert gateway.requests == {STRONG.id: WORKERS}
    assert len(stand.predictions(STRONG.id)) == WORKERS
    assert [tally.stopped for tally in board] == ["interrupted", "interrupted"]
    assert not any(tally.failed for tally in board)
    assert not list(stand.journal.read(RUNS, WEAK.id))


def test_who_waits_for_another_process_waits_no_longer(tmp_path: Path) -> None:
    board: list[StageProgress] = []
    with DemoGateway(QUESTIONS) as gateway:
        stand = a_stand(tmp_path, gateway)
        locks = stand.settings.journal / "locks"
        locks.mkdir(parents=True)
        with FileLock(locks / "predictions-demo%2Fstrong.lock"), interrupted(lambda: bool(board)):
            run_async(asking(stand, board, STRONG))

        assert not gateway.requests
    assert board[0].stopped == "interrupted"


def test_who_waits_to_be_asked_again_waits_no_longer(tmp_path: Path) -> None:
    board: list[StageProgress] = []
    with DemoGateway(QUESTIONS, faults=Faults(status={STRONG.id: 503})) as gateway:
        stand = a_stand(tmp_path, gateway, requests={"first_wait_s": 600, "longest_wait_s": 600})
        with interrupted(lambda: gateway.requests[STRONG.id] == len(QUESTIONS)):
            run_async(asking(stand, board, STRONG))

        assert gateway.requests[STRONG.id] == len(QUESTIONS)
        gateway.misbehave(Faults())
        stand.predict(STRONG, launch=Launch("run-2", Mode.FIX))
    assert {one.outcome for one in stand.predictions().values()} == {"ok"}


def test_of_several_runs_the_next_one_is_not_begun_to_be_judged(tmp_path: Path) -> None:
    board: list[StageProgress] = []
    with KeepsWaiting(QUESTIONS, JUDGE.id, before=0) as gateway:
        stand = a_stand(tmp_path, gateway)
        for number in (1, 2):
            stand.predict(STRONG, launch=Launch(f"run-{number}", Mode.FRESH))
        work = judge(
            [STRONG.id],
            [JUDGE],
            Launch("judging"),
            settings=stand.settings,
            journal=stand.journal,
            board=board,
        )

        def then() -> None:
            wait_for(stopped_one(board))
            gateway.go_on.set()

        with interrupted(lambda: gateway.has_all_waiting, then):
            run_async(work)

        assert gateway.requests[JUDGE.id] == len(stand.judgements()) == WORKERS
        assert board[0].planned == len(QUESTIONS)
        stand.judge(STRONG.id)
        assert gateway.requests[JUDGE.id] == len(stand.judgements()) == 2 * len(QUESTIONS)


def test_verdicts_that_are_being_repeated_land(tmp_path: Path) -> None:
    board: list[StageProgress] = []
    with KeepsWaiting(QUESTIONS, JUDGE.id, before=len(QUESTIONS)) as gateway:
        stand = a_stand(tmp_path, gateway)
        listed = Sighting(model=JUDGE, selected=True, seen_at=NOON)
        stand.journal.write_whole(SIGHTINGS, "the only one", records=[listed])
        stand.predict(STRONG)
        stand.judge(STRONG.id)
        warehouse = Warehouse(stand.settings.database, stand.journal)
        warehouse.publish()
        with warehouse.reading() as db:
            drawn = sample_answers(db, len(QUESTIONS))

        def then() -> None:
            wait_for(stopped_one(board))
            gateway.go_on.set()

        with interrupted(lambda: gateway.has_all_waiting, then):
            settings, journal = stand.settings, stand.journal
            run_async(rejudge(drawn, "run-2", settings=settings, journal=journal, board=board))

    assert len(list(stand.journal.read(REJUDGED))) == WORKERS


def test_code_that_waits_for_a_place_is_not_graded_and_what_is_being_graded_is() -> None:
    places, graded, left = Slots(1), list[str](), list[str]()
    stop_seen = threading.Event()

    async def grade(name: str) -> None:
        try:
            async with places:
                while not stop_seen.is_set():  # noqa: ASYNC110  (it is set in another thread)
                    await asyncio.sleep(0.01)
                graded.append(name)
        except Halted:
            left.append(name)

    async def all_of_it() -> None:
        async with asyncio.TaskGroup() as group:
            for name in ("first", "second"):
                group.create_task(grade(name))

    def then() -> None:
        wait_for(lambda: bool(left))
        stop_seen.set()

    with interrupted(places.locked, then):
        run_async(all_of_it())

    assert (graded, left) == (["first"], ["second"])
