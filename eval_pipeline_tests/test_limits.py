"""When a failed request is asked again, and how long a server may make us wait."""

import asyncio
from datetime import UTC, datetime

import pytest

from eval_pipeline.providers.chat import ProviderError, ask
from eval_pipeline.providers.limits import RetryPolicy, parse_retry_after
from eval_pipeline.records import Outcome
from eval_pipeline_tests.test_exam_judge import ScriptedProvider
from eval_pipeline_tests.test_openai_compatible import a_request, error_of, http

NEW_YEAR = datetime(2025, 1, 1, tzinfo=UTC)
POLICY = RetryPolicy(attempts=10, first_wait_s=1, longest_wait_s=60)


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
        pytest.param(4, 7.0, 1.0, 7.8, id="a little spread out"),
        pytest.param(1, 0.0, 0.0, 0.0, id="at once"),
        pytest.param(1, 86_400.0, 0.0, 60.0, id="a server can not ask for a day"),
        pytest.param(1, float("inf"), 0.0, 60.0, id="nor for ever"),
    ],
)
def test_the_wait_grows_and_is_bounded(
    attempt: int, retry_after: float | None, jitter: float, expected: float
) -> None:
    wait = POLICY.wait_after(attempt, transient=True, retry_after=retry_after, jitter=jitter)

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
    policy = RetryPolicy(attempts=attempts, first_wait_s=1, longest_wait_s=60)

    wait = policy.wait_after(attempt, transient=transient, retry_after=retry_after, jitter=0.5)

    assert (wait is not None) == again


@pytest.mark.parametrize("retry_after", [None, 0.0, 5.0, float("inf")])
def test_a_policy_without_waits_never_waits(retry_after: float | None) -> None:
    policy = RetryPolicy(attempts=5, first_wait_s=0, longest_wait_s=0)

    wait = policy.wait_after(3, transient=True, retry_after=retry_after, jitter=1.0)

    assert wait == 0


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

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    slow_down = ProviderError(Outcome.RATE_LIMITED, "", transient=True, retry_after=7)
    provider = ScriptedProvider([slow_down, "", "42"])
    policy = RetryPolicy(attempts=5, first_wait_s=0, longest_wait_s=60)

    asked = asyncio.run(ask(provider, a_request(), policy))

    assert waits == [7, 0]
    assert asked.attempts == 3
    assert provider.asked == [a_request()] * 3
