"""What comes of asking: outcomes, failures by kind, asking again, and the key in none of it."""

import asyncio
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import Asked, ChatRequest, ProviderError
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.records.outcome import Outcome
from eval_pipeline_tests.builders import a_question, ask
from eval_pipeline_tests.wire import (
    END,
    KEY,
    PARTIAL,
    STREAM,
    a_request,
    complete,
    delta,
    error_of,
    http,
    provider_at,
    reply_to,
    whole,
)

AT_ONCE = RetryPolicy(3, first_wait_s=0, longest_wait_s=0, total_s=60, attempts_when_limited=3)


@pytest.fixture(scope="module")
def running() -> Iterator[DemoGateway]:
    with DemoGateway([a_question()]) as gateway:
        yield gateway


@pytest.fixture
def gateway(running: DemoGateway) -> DemoGateway:
    running.misbehave(Faults())
    running.requests.clear()
    return running


def ask_at(
    base_url: str, request: ChatRequest, policy: RetryPolicy = AT_ONCE, timeout_s: float = 20
) -> Asked:
    async def run() -> Asked:
        async with provider_at(base_url, timeout_s=timeout_s) as provider:
            return await ask(provider, request, policy)

    return asyncio.run(run())


@pytest.mark.parametrize(
    ("status", "outcome", "transient"),
    [
        (400, Outcome.BAD_REQUEST, False),
        (401, Outcome.AUTH, False),
        (402, Outcome.NO_CREDIT, False),
        (403, Outcome.FORBIDDEN, False),
        (404, Outcome.UNKNOWN_MODEL, False),
        (408, Outcome.TIMEOUT, True),
        (413, Outcome.BAD_REQUEST, False),
        (429, Outcome.RATE_LIMITED, True),
        (500, Outcome.SERVER_ERROR, True),
        (502, Outcome.SERVER_ERROR, True),
        (529, Outcome.SERVER_ERROR, True),
    ],
)
def test_a_status_says_what_went_wrong_and_whether_to_ask_again(
    gateway: DemoGateway, status: int, outcome: Outcome, transient: bool
) -> None:
    gateway.misbehave(Faults(status={"demo/strong": status}))

    asked = ask_at(gateway.base_url, a_request())

    assert asked.reply is None
    assert asked.error is not None
    assert (asked.error.outcome, asked.error.transient) == (outcome, transient)
    assert str(asked.error) == f"HTTP {status}: A simulated fault."
    assert asked.attempts == gateway.requests["demo/strong"] == (3 if transient else 1)


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (429, "insufficient_quota", Outcome.NO_CREDIT),
        (400, "content_filter", Outcome.CONTENT_FILTER),
        (403, "moderation", Outcome.CONTENT_FILTER),
        (200, 402, Outcome.NO_CREDIT),
        (200, 429, Outcome.RATE_LIMITED),
    ],
)
def test_the_code_in_an_error_can_say_it_better_than_the_status(
    status: int, code: JsonValue, outcome: Outcome
) -> None:
    error = error_of(http({"error": {"code": code, "message": "No."}}, status=status))

    assert error.outcome is outcome
    assert error.transient == (outcome in {Outcome.RATE_LIMITED, Outcome.SERVER_ERROR})


CHUNKED = "transfer-encoding: chunked\r\n"
SOME = delta({"content": PARTIAL})


@pytest.mark.parametrize(
    ("sends", "outcome"),
    [
        pytest.param(whole({"content": PARTIAL})[:-9], Outcome.INVALID_REPLY, id="half a JSON"),
        pytest.param(http([PARTIAL]), Outcome.INVALID_REPLY, id="JSON of another kind"),
        pytest.param(http({"text": PARTIAL}), Outcome.INVALID_REPLY, id="no choices"),
        pytest.param(http(b"<p>Hi", "text/html"), Outcome.INVALID_REPLY, id="a web page"),
        pytest.param(http(b"\xff\xfe"), Outcome.INVALID_REPLY, id="no text"),
        pytest.param(
            whole({"content": PARTIAL}, error={"message": "No."}), Outcome.SERVER_ERROR, id="error"
        ),
        pytest.param(
            http(PARTIAL.encode(), headers="content-length: 999\r\n"), Outcome.CUT_STREAM, id="cut"
        ),
        pytest.param(http(SOME, STREAM), Outcome.CUT_STREAM, id="no finish reason"),
        pytest.param(
            http(SOME + b"data: [DONE]\n\n", STREAM), Outcome.CUT_STREAM, id="DONE without a reason"
        ),
        pytest.param(http(SOME + END[:-40], STREAM), Outcome.CUT_STREAM, id="cut in its last line"),
        pytest.param(
            http(b"%x\r\n" % (len(SOME) + 9) + SOME, STREAM, headers=CHUNKED),
            Outcome.CUT_STREAM,
            id="cut in a chunk",
        ),
        pytest.param(http(SOME + b"data: {\n\n" + END, STREAM), Outcome.INVALID_REPLY, id="broken"),
        pytest.param(
            http(SOME + b'data: {"error":{"code":429}}\n\n' + END, STREAM),
            Outcome.RATE_LIMITED,
            id="an error in the middle",
        ),
        pytest.param(
            http(SOME + END + b'data: {"error":"Oh."}\n\n', STREAM),
            Outcome.SERVER_ERROR,
            id="an error at the end",
        ),
        pytest.param(b"", Outcome.CONNECTION_ERROR, id="nothing"),
        pytest.param(b"\x00\x01\r\n\r\n", Outcome.CONNECTION_ERROR, id="no HTTP"),
        pytest.param(
            http(b"plain", headers="content-encoding: gzip\r\n"),
            Outcome.INVALID_REPLY,
            id="not compressed as it says",
        ),
    ],
)
def test_a_part_of_a_reply_is_none(sends: bytes, outcome: Outcome) -> None:
    error = error_of(sends)

    assert (error.outcome, error.transient) == (outcome, True)
    assert PARTIAL not in str(error)


def test_nobody_listening_is_a_connection_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    asked = ask_at(f"http://127.0.0.1:{port}/v1", a_request())

    assert asked.error is not None
    assert (asked.error.outcome, asked.attempts) == (Outcome.CONNECTION_ERROR, 3)


def test_the_words_of_a_server_become_one_short_line() -> None:
    error = error_of(http({"error": {"message": "One\n\x1b[31mtwo\u2028" + "x" * 999}}, status=400))

    assert str(error).startswith("HTTP 400: One [31mtwo xxx")
    assert str(error).isprintable()
    assert len(str(error)) < 520


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ("rate_limited", Outcome.RATE_LIMITED),
        ("server_error", Outcome.SERVER_ERROR),
        ("cut_stream", Outcome.CUT_STREAM),
        ("invalid_json", Outcome.INVALID_REPLY),
        ("reset", Outcome.CONNECTION_ERROR),
        ("empty", Outcome.EMPTY),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_what_passes_is_asked_again_as_often_as_the_policy_allows(
    gateway: DemoGateway, fault: str, outcome: Outcome, stream: bool
) -> None:
    request = a_request(stream=stream)
    expected = complete(gateway.base_url, request).text
    faults = Faults.model_validate({fault: 1, "times": 3})

    gateway.misbehave(faults)
    gave_up, gave_up_after = ask_at(gateway.base_url, request), gateway.requests.total()
    gateway.misbehave(faults)
    patient = ask_at(gateway.base_url, request, replace(AT_ONCE, attempts=9))

    assert gave_up.reply is None
    assert gave_up.error is not None
    assert (gave_up.error.outcome, gave_up.error.transient) == (outcome, True)
    assert "Simulated" not in str(gave_up.error)
    assert gave_up.attempts == gave_up_after - 1 == 3
    assert patient.error is None
    assert patient.reply is not None
    assert (patient.reply.text, patient.attempts) == (expected, 4)
    assert gateway.requests.total() == gave_up_after + 4


def test_a_server_that_hangs_is_left_and_asked_again(gateway: DemoGateway) -> None:
    gateway.misbehave(Faults(hang=1, times=1))
    patient = ask_at(gateway.base_url, a_request(), timeout_s=1.5)
    gateway.misbehave(Faults(hang=1))
    gave_up = ask_at(gateway.base_url, a_request(), timeout_s=0.1)

    assert patient.reply is not None
    assert patient.attempts == 2
    assert gave_up.error is not None
    assert (gave_up.error.outcome, gave_up.attempts) == (Outcome.TIMEOUT, 3)


@pytest.mark.parametrize(
    ("message", "finish", "outcome"),
    [
        ({"content": "42"}, "stop", Outcome.OK),
        ({"content": "42"}, "tool_calls", Outcome.OK),
        ({"content": "4"}, "length", Outcome.TRUNCATED),
        ({"content": ""}, "length", Outcome.TRUNCATED),
        ({"content": "4"}, "content_filter", Outcome.CONTENT_FILTER),
        ({"content": None, "refusal": "I will not."}, "stop", Outcome.REFUSED),
        ({"content": ""}, "stop", Outcome.EMPTY),
        ({"content": " \n", "reasoning": "Hm."}, "stop", Outcome.EMPTY),
        ({}, "stop", Outcome.EMPTY),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_what_was_said_and_why_it_ended_is_the_outcome(
    message: dict[str, JsonValue], finish: str, outcome: Outcome, streamed: bool
) -> None:
    stream = http(delta(message) + delta({}, finish), STREAM)

    reply = reply_to(stream if streamed else whole(message, finish))

    assert reply.outcome is outcome


def test_a_server_that_repeats_the_key_is_not_quoted(gateway: DemoGateway) -> None:
    gateway.misbehave(Faults(echo_key=True, status={"demo/weak": 401}))

    reply = ask_at(gateway.base_url, a_request()).reply
    error = ask_at(gateway.base_url, a_request(model="demo/weak")).error

    assert reply is not None
    assert "your key is [KEY];" in reply.text
    assert str(error) == "HTTP 401: A simulated fault. Your key is [KEY]."


ESCAPED = "".join(f"\\u{ord(letter):04x}" for letter in KEY).encode()
SPOKEN: dict[str, JsonValue] = {"content": KEY, "reasoning": KEY, "refusal": KEY}


@pytest.mark.parametrize(
    "sends",
    [
        pytest.param(whole(SPOKEN), id="said"),
        pytest.param(whole({}, KEY, id=KEY, model=KEY, provider=KEY), id="about"),
        pytest.param(whole({"content": KEY}).replace(KEY.encode(), ESCAPED), id="escaped"),
        pytest.param(
            http(b"".join(delta({"content": part}) for part in KEY) + END, STREAM),
            id="letter by letter",
        ),
        pytest.param(http({"error": {"message": KEY}}, status=401), id="error"),
        pytest.param(
            http({"error": {"message": KEY}}, status=401).replace(KEY.encode(), ESCAPED),
            id="escaped error",
        ),
        pytest.param(http({"error": KEY}), id="error in a 200"),
        pytest.param(http({"detail": KEY}, status=401), id="another shape"),
        pytest.param(
            http(b'data: {"error":"%b"}\n\n' % KEY.encode(), STREAM), id="error in a stream"
        ),
        pytest.param(http(("x" * 490 + KEY).encode(), status=401), id="where the message is cut"),
        pytest.param(f"HTTP/9 {KEY}\r\n\r\n".encode(), id="no HTTP"),
    ],
)
def test_the_key_is_in_no_reply_and_in_no_error(sends: bytes) -> None:
    try:
        shown = repr(reply_to(sends))
    except ProviderError as error:
        shown = f"{error!r} {error} {error.__cause__}"

    assert "[KEY]" in shown
    assert KEY[:10] not in shown
