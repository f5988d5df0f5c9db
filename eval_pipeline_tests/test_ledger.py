"""Limits per minute that hold over all processes that share them."""

import asyncio
import fcntl
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from eval_pipeline.gateways.demo.requests import Request
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.gateways.limits import (
    LATEST_TIMER_S,
    LONGEST_SHARE_S,
    Reservation,
    Reservations,
    Share,
    SharedRateLimit,
)
from eval_pipeline.gateways.rate_limiter import Meters, StopSignal
from eval_pipeline.journal import JUDGED, PREDICTIONS, Journal
from eval_pipeline.journal.files import JournalError
from eval_pipeline.runtime import Halted
from eval_pipeline.settings.gateway import RateLimits
from eval_pipeline_tests.builders import a_question, settings_in
from eval_pipeline_tests.project import ROOT, environment

NOTHING = Reservation(0)
PER_S, ITEMS = 25, 40


class Asker:
    """A process that shares a book with others: it always wants to ask, and waits as it must."""

    def __init__(self, per_minute: float, *, amount: float = 1, starts: float = 100.0) -> None:
        self.share = Share(per_minute)
        self.amount = amount
        self.moment = starts
        self.asked: list[float] = []

    def ask(self, book: Reservations) -> Reservations:
        """Asks once, as soon as the book lets it."""
        if not self.share.covers(self.amount, self.moment):
            wanted = self.share.wanted(self.amount, self.moment)
            book, begins = book.take({"requests": wanted}, self.moment)
            self.share.given(wanted, begins["requests"])
        self.moment += self.share.ready_in(self.moment)
        self.share.use(self.amount, self.moment)
        self.asked.append(self.moment - 100)
        return book


def asked_by(askers: list[Asker], times: int) -> list[float]:
    """When they ask, who is earliest always first."""
    book = Reservations()
    for _ in range(times):
        book = min(askers, key=lambda one: one.moment).ask(book)
    return sorted(moment for asker in askers for moment in asker.asked)


def test_a_limit_is_used_evenly() -> None:
    assert asked_by([Asker(120)], 5) == pytest.approx([0, 0.45, 0.95, 1.45, 1.95])


@pytest.mark.parametrize("per_minute", [6, 60, 90, 600, 6000])
@pytest.mark.parametrize("processes", [1, 2, 5])
def test_processes_together_use_all_of_a_limit_and_no_more(
    processes: int, per_minute: float
) -> None:
    askers = [Asker(per_minute, starts=100 + 0.01 * n) for n in range(processes)]

    per_s, late = per_minute / 60, LATEST_TIMER_S * per_minute / 60
    times = max(400, round(20 * per_s))

    asked = asked_by(askers, times)

    # What some have taken in advance is used by them after the others have ended.
    rest_s = LONGEST_SHARE_S * (processes - 1)
    assert asked[-1] == pytest.approx((times - 1 - late) / per_s, rel=0.02, abs=rest_s)
    for first, moment in enumerate(asked):
        within = [one for one in asked[first:] if one < moment + 10]
        assert len(within) <= 10 * per_s + late + 1
    # Who always wants to ask has as much of it as everybody else, but for three seconds' worth.
    shares = [len(asker.asked) for asker in askers]
    assert max(shares) - min(shares) <= 3 * max(1, per_s * LONGEST_SHARE_S)


def test_what_is_left_of_a_share_and_too_little_for_a_large_request_is_not_lost() -> None:
    asked = asked_by([Asker(60_000, amount=700), Asker(60_000, amount=700)], 200)

    assert asked[-1] == pytest.approx(199 * 0.7, rel=0.03)


def test_a_share_doubles_up_to_a_second_while_it_is_used_up_and_begins_small_after_a_pause() -> (
    None
):
    share, moment, reserved = Share(600), 100.0, []

    for _ in range(60):
        if not share.covers(1, moment):
            wanted = share.wanted(1, moment)
            share.given(wanted, moment)
            reserved.append(wanted.seconds)
        moment += share.ready_in(moment)
        share.use(1, moment)

    assert reserved[:6] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0, 1.0])
    assert max(reserved) == pytest.approx(1.0)
    assert share.wanted(1, moment + 5).seconds == pytest.approx(0.1)


def test_who_asks_rarely_takes_no_more_than_that() -> None:
    book, busy = Reservations(), Asker(600)
    rare = [Asker(600, starts=100 + n) for n in range(5)]

    for asker in rare:
        for _ in range(4):
            book = asker.ask(book)
            asker.moment += 5
    # Five who ask every five seconds leave nine of ten requests a second to the sixth.
    while busy.moment < rare[0].moment:
        book = busy.ask(book)

    assert len(busy.asked) == pytest.approx(10 * busy.asked[-1], rel=0.1)


def test_what_was_used_in_truth_is_made_up_for() -> None:
    book, dear, cheap = Reservations(), Asker(6000, amount=205), Asker(6000, amount=205)
    dear.ask(book)
    cheap.ask(book)

    dear.share.correct(300)
    cheap.share.correct(-100)

    assert (dear.share.ready_in(100), cheap.share.ready_in(100)) == pytest.approx((5, 1))
    for asker, others_wait in ((dear, 5), (cheap, 1)):
        told, _ = Reservations(free_from={"requests": 102.0}).take(
            {"requests": asker.share.debt() or NOTHING}, 100
        )
        _, begins = told.take({"requests": NOTHING}, 100)
        assert begins["requests"] == pytest.approx(100 + others_wait)


def test_a_clock_that_was_set_back_holds_nobody_up() -> None:
    book, _ = Reservations().take({"requests": Reservation(2)}, now=5000)

    _, a_little = book.take({"requests": NOTHING}, now=4999)
    _, far = book.take({"requests": NOTHING}, now=1000)

    assert a_little["requests"] == pytest.approx(5002, abs=0.1)
    assert far["requests"] == pytest.approx(1002, abs=0.1)


class Counting(DemoGateway):
    """A gateway that knows when it was asked."""

    def __init__(self, **given: object) -> None:
        super().__init__((), **given)  # type: ignore[arg-type]
        self.arrivals: list[float] = []

    @contextmanager
    def _counted(self, request: Request) -> Iterator[None]:
        self.arrivals.append(time.monotonic())
        with super()._counted(request):
            yield


@pytest.mark.slow
def test_two_processes_together_ask_no_more_than_the_gateway_lets_through(tmp_path: Path) -> None:
    questions = [a_question(f"q{number}", question=f"What is {number}?") for number in range(ITEMS)]
    with Counting() as gateway:
        limited = {"name": "demo", "kind": "demo", "base_url": gateway.base_url}
        settings = settings_in(
            tmp_path, questions=questions, gateways=[{**limited, "requests_per_minute": 60 * PER_S}]
        )
        command = [sys.executable, "-m", "eval_pipeline_tests.child"]
        env = environment() | {"PYTHONPATH": str(ROOT)}
        children = [
            subprocess.Popen([*command, model, f"run-{model[-4:]}"], cwd=tmp_path, env=env)
            for model in ("demo/strong", "demo/average")
        ]
        ended = [child.wait(60) for child in children]

    journal = Journal(settings.journal)
    asked = len(list(journal.read(PREDICTIONS))) + len(list(journal.read(JUDGED)))
    assert (ended, asked, len(gateway.arrivals)) == ([0, 0], 4 * ITEMS, 4 * ITEMS)
    # On a busy machine requests arrive late, and so closer to each other than they were sent.
    seconds = gateway.arrivals[-1] - gateway.arrivals[0]
    assert seconds >= 0.85 * (asked - 1) / PER_S


def test_those_who_share_a_file_take_one_moment_after_the_other(tmp_path: Path) -> None:
    one, other = (SharedRateLimit(tmp_path, "gateway", "demo") for _ in range(2))

    waits = [limit.take({"requests": Reservation(10)}) for limit in (one, other, one)]

    assert [(wait or {})["requests"] for wait in waits] == pytest.approx([0, 10, 20], abs=1)


@pytest.mark.parametrize(
    "garbage", ["", "{", "[1]", '{"free_from": 3}', '{"free_from": {"requests": "NaN"}}', "\0" * 99]
)
def test_a_file_that_nobody_could_have_written_counts_as_nothing(
    tmp_path: Path, garbage: str
) -> None:
    shared = SharedRateLimit(tmp_path, "model", "vendor/name:provider")
    shared.path.parent.mkdir()
    shared.path.write_text(garbage)

    waits = [shared.take({"requests": Reservation(5)}) or {} for _ in range(2)]

    assert [wait["requests"] for wait in waits] == pytest.approx([0, 5], abs=1)


def test_whoever_waits_for_the_file_can_be_halted(tmp_path: Path) -> None:
    shared = SharedRateLimit(tmp_path, "gateway", "demo")
    shared.path.parent.mkdir()
    meters, halt = Meters(RateLimits(requests_per_minute=600), shared), StopSignal()

    async def work() -> None:
        waiting = asyncio.create_task(meters.wait(halt, 1))
        await asyncio.sleep(0.05)
        assert not waiting.done()
        halt()
        with pytest.raises(Halted):
            await waiting

    with shared.path.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        asyncio.run(asyncio.wait_for(work(), 20))


def test_a_folder_that_can_not_be_written_is_told_of(tmp_path: Path) -> None:
    (tmp_path / "limits").write_text("no folder")

    with pytest.raises(JournalError, match=r"limits.*cannot be written"):
        SharedRateLimit(tmp_path, "gateway", "demo").take({"requests": NOTHING})


def test_without_limits_there_is_nothing_to_wait_for(tmp_path: Path) -> None:
    meters = Meters(RateLimits(), SharedRateLimit(tmp_path, "gateway", "demo"))

    asyncio.run(meters.wait(StopSignal(), 1))
    asyncio.run(meters.settle())

    assert not meters
    assert not (tmp_path / "limits").exists()
