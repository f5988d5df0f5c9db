"""When a failed request is asked again, and how long a server may make us wait."""

import asyncio
from datetime import UTC, datetime

import pytest

from eval_pipeline.gateways.chat import ProviderError
from eval_pipeline.gateways.limits import RetryPolicy, Window, parse_retry_after
from eval_pipeline.gateways.rate_limiter import StopSignal
from eval_pipeline.records.outcome import Outcome
from eval_pipeline_tests.builders import ask
from eval_pipeline_tests.test_exam_judge import ScriptedProvider
from eval_pipeline_tests.wire import a_request, error_of, http

NEW_YEAR = datetime(2025, 1, 1, tzinfo=UTC)
POLICY = RetryPolicy(attempts=10, first_wait_s=1, longest_wait_s=60, total_s=100)


@pytest.mark.parametrize(
    ("attempt", "retry_after", "jitter", "expected"),
    [
        pytest.param(1, None, 1.0, 1.0, id="the first wait"),
        pytest.param(2, None, 1.0, 2.0, id="twice as long"),
        pytest.param(4, None, 1.0, 8.0, id="and again"),
        pytest.param(9, None, 1.0, 60.0, id="but never longer than the longest"),
        pytest.param(4, None, 0.25, 2.0, id="jitter takes a part of it"),
        pytest.param(4, None, 0.0, 0.0, id="or all of it"),
        pytest.param(1, 7.0, 0.0, 7.0, id="the server's word"),
        pytest.param(3, 7.0, 1.0, 7.4, id="a little spread out"),
        pytest.param(4, 0.0, 1.0, 8.0, id="never sooner than we would have come anyway"),
        pytest.param(1, 0.0, 0.0, 0.0, id="at once"),
        pytest.param(1, 86.0, 0.0, 86.0, id="longer than the longest"),
        pytest.param(1, 86_400.0, 0.0, None, id="a server can not ask for a day"),
        pytest.param(1, float("inf"), 0.0, None, id="nor for ever"),
    ],
)
def test_the_wait_grows_and_is_bounded(
    attempt: int, retry_after: float | None, jitter: float, expected: float | None
) -> None:
    wait = POLICY.wait_after(
        attempt, transient=True, retry_after=retry_after, jitter=jitter, elapsed_s=10
    )

    assert wait == pytest.approx(expected)


@pytest.mark.parametrize(
    ("attempts", "attempt", "transient", "again"),
    [
        pytest.param(3, 1, True, True, id="the first of three"),
        pytest.param(3, 2, True, True, id="the second of three"),
        pytest.param(3, 3, True, False, id="the last of three"),
        pytest.param(3, 4, True, False, id="beyond the last"),
        pytest.param(1, 1, True, False, id="the only one"),
        pytest.param(3, 1, False, False, id="hopeless"),
    ],
)
@pytest.mark.parametrize("retry_after", [None, 5.0])
def test_asking_ends_with_the_last_attempt_or_when_it_is_hopeless(
    attempts: int, attempt: int, transient: bool, again: bool, retry_after: float | None
) -> None:
    policy = RetryPolicy(attempts=attempts, first_wait_s=1, longest_wait_s=60, total_s=100)

    wait = policy.wait_after(
        attempt, transient=transient, retry_after=retry_after, jitter=0.5, elapsed_s=0
    )

    assert (wait is not None) == again


@pytest.mark.parametrize("retry_after", [None, 0.0])
def test_a_policy_without_waits_never_waits(retry_after: float | None) -> None:
    policy = RetryPolicy(attempts=5, first_wait_s=0, longest_wait_s=0, total_s=100)

    wait = policy.wait_after(3, transient=True, retry_after=retry_after, jitter=1.0, elapsed_s=0)

    assert wait == 0


@pytest.mark.parametrize(("elapsed_s", "again"), [(0, True), (92, True), (94, False), (200, False)])
def test_an_item_is_given_up_when_its_time_would_be_over(elapsed_s: float, again: bool) -> None:
    wait = POLICY.wait_after(2, transient=True, retry_after=7, jitter=0, elapsed_s=elapsed_s)

    assert (wait is not None) == again


def test_all_requests_may_run_at_once_until_the_server_minds() -> None:
    window = Window(100)

    for _ in range(300):
        window.answered(started=0)

    assert window.width == 100


def test_a_burst_of_refusals_halves_the_window_once_per_round() -> None:
    window = Window(100)

    bursts = [window.turned_away(started=1, now=2) for _ in range(100)]
    same_round = window.width
    bursts += [window.turned_away(started=3, now=4) for _ in range(10)]

    assert (bursts.count(True), same_round, window.width) == (2, 50, 25)


def test_single_refusals_among_many_answers_do_not_narrow_it() -> None:
    window = Window(100)

    for number in range(1000):
        if number % 3:
            window.answered(started=number)
        else:
            window.turned_away(started=number, now=number)

    assert window.width == 100


def test_it_narrows_down_to_one_and_recovers_up_to_the_setting() -> None:
    window = Window(64)
    moment, widths = 0, []
    for _ in range(200):
        moment += 1
        window.turned_away(started=moment, now=moment)
    narrowest = window.width

    while window.width < 64:
        for _ in range(window.width):
            window.answered(started=moment + 1)
        widths.append(window.width)

    for _ in range(1000):
        window.answered(started=moment + 1)
    assert narrowest == 1
    assert widths == sorted(widths)
    assert len(widths) < 40
    assert window.width == 64


def test_to_be_turned_away_is_no_failure_and_may_happen_more_often() -> None:
    policy = RetryPolicy(2, first_wait_s=0, longest_wait_s=0, total_s=9, attempts_when_limited=4)

    def tries(*, limited: bool) -> list[bool]:
        return [
            policy.wait_after(
                attempt, transient=True, retry_after=None, jitter=1, elapsed_s=0, limited=limited
            )
            is not None
            for attempt in range(1, 6)
        ]

    assert tries(limited=False) == [True, False, False, False, False]
    assert tries(limited=True) == [True, True, True, False, False]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(None, None, id="no header"),
        pytest.param("", None, id="an empty header"),
        pytest.param("0", 0.0, id="now"),
        pytest.param("5", 5.0, id="seconds"),
        pytest.param("0.5", 0.5, id="a part of a second"),
        pytest.param(" 5 ", 5.0, id="spaces around"),
        pytest.param("-3", 0.0, id="a negative number"),
        pytest.param("nan", 0.0, id="no number"),
        pytest.param("-inf", 0.0, id="minus infinity"),
        pytest.param("1e400", float("inf"), id="a number beyond all numbers"),
        pytest.param("9" * 5000, float("inf"), id="thousands of digits"),
        pytest.param("Wed, 01 Jan 2025 00:00:10 GMT", 10.0, id="a date to come"),
        pytest.param("Wed, 01 Jan 2025 00:00:10", 10.0, id="a date without a zone is UTC"),
        pytest.param("Wed, 01 Jan 2025 01:00:10 +0100", 10.0, id="a date in another zone"),
        pytest.param("Tue, 31 Dec 2024 23:59:59 GMT", 0.0, id="a date gone by"),
        pytest.param("Mon, 01 Jan 0001 00:00:00 GMT", 0.0, id="the first of all dates"),
        pytest.param("Fri, 31 Dec 9999 23:59:59 GMT", 251_666_611_199.0, id="the last one"),
        pytest.param("Wed, 32 Jan 2025 00:00:10 GMT", None, id="a day that does not exist"),
        pytest.param("2025-01-01T00:00:10Z", None, id="a date in another form"),
        pytest.param("5 s", None, id="a unit"),
        pytest.param("0, 1", None, id="two numbers"),
        pytest.param("soon", None, id="a word"),
        pytest.param(",", None, id="punctuation"),
    ],
)
def test_retry_after_is_a_number_a_date_or_nothing(
    text: str | None, expected: float | None
) -> None:
    seconds = parse_retry_after(text, NEW_YEAR)

    assert seconds == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", None),
        ("retry-after: 7\r\n", 7.0),
        ("retry-after: Wed, 01 Jan 2025 00:00:00 GMT\r\n", 0.0),
        ("retry-after: soon\r\n", None),
    ],
)
def test_an_error_carries_when_to_come_again(header: str, expected: float | None) -> None:
    error = error_of(http({}, status=429, headers=header))

    assert error.retry_after == expected


def test_the_wait_is_what_the_server_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []

    async def sleep(_: StopSignal, seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(StopSignal, "sleep", sleep)
    slow_down = ProviderError(Outcome.RATE_LIMITED, "", transient=True, retry_after=7)
    provider = ScriptedProvider([slow_down, "", "42"])
    policy = RetryPolicy(attempts=5, first_wait_s=0, longest_wait_s=60, total_s=100)

    asked = asyncio.run(ask(provider, a_request(), policy))

    assert waits == [7, 0]
    assert asked.attempts == 3
    assert provider.asked == [a_request()] * 3
