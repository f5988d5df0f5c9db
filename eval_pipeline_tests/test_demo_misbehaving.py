"""The simulated gateway over real HTTP, when it is told to misbehave."""

import json
import threading
import time

import httpx
import pytest

from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline_tests.test_demo_server import QUESTION, a_body, an_item, ask, content

PROMPT = "<reference>Oslo</reference><response>Answer: oslo</response>"


def a_gateway(faults: Faults, *, allow_control: bool = False) -> DemoGateway:
    return DemoGateway([an_item()], faults=faults, allow_control=allow_control)


def test_a_rate_limit_says_when_to_come_again_and_then_is_over() -> None:
    faults = Faults(rate_limited=1, times=1, retry_after="seconds", retry_after_s=0.5)

    with a_gateway(faults) as gateway:
        first, second, other = (ask(gateway, a_body(text=text)) for text in ("x", "x", "y"))

    assert [reply.status_code for reply in (first, second, other)] == [429, 200, 429]
    assert first.headers["retry-after"] == "0.5"
    assert first.json()["error"]["code"] == "rate_limit_exceeded"


def test_server_errors_come_in_turn() -> None:
    with a_gateway(Faults(server_error=1)) as gateway:
        statuses = [ask(gateway, a_body()).status_code for _ in range(4)]

    assert sorted(statuses) == [500, 502, 503, 529]


@pytest.mark.parametrize("stream", [True, False])
def test_a_cut_reply_breaks_off_after_it_began(stream: bool) -> None:
    received = b""
    with (
        a_gateway(Faults(cut_stream=1)) as gateway,
        httpx.Client() as client,
        client.stream(
            "POST", f"{gateway.base_url}/chat/completions", json=a_body(stream=stream)
        ) as reply,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        for data in reply.iter_bytes():
            received += data

    assert reply.status_code == 200
    assert b"Simulated reply" in received
    assert b"Confidence" not in received
    assert b'"finish_reason": "stop"' not in received


def test_invalid_json_is_no_json() -> None:
    with a_gateway(Faults(invalid_json=1)) as gateway:
        whole = ask(gateway, a_body())
        stream = ask(gateway, a_body(stream=True))

    with pytest.raises(json.JSONDecodeError):
        whole.json()
    broken = 0
    for line in stream.text.split("\n\n"):
        try:
            json.loads(line.removeprefix("data: ") or "{}")
        except json.JSONDecodeError:
            broken += line != "data: [DONE]"
    assert (whole.status_code, stream.status_code) == (200, 200)
    assert broken == 1


def test_an_empty_reply_is_whole_but_has_no_text() -> None:
    with a_gateway(Faults(empty=1)) as gateway:
        whole = ask(gateway, a_body())
        stream = ask(gateway, a_body(stream=True))

    assert content(whole) == ""
    assert whole.json()["choices"][0]["finish_reason"] == "stop"
    assert '"finish_reason": "stop"' in stream.text
    assert "Simulated reply" not in stream.text


def test_a_reset_comes_before_any_byte() -> None:
    with (
        a_gateway(Faults(reset=1, times=1)) as gateway,
        pytest.raises(httpx.ReadError, match="reset"),
    ):
        ask(gateway, a_body())


def test_a_hanging_request_ends_when_the_client_gives_up() -> None:
    with a_gateway(Faults(hang=1, times=1)) as gateway:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{gateway.base_url}/chat/completions", json=a_body(), timeout=0.2)

        assert ask(gateway, a_body()).status_code == 200


@pytest.mark.parametrize("faults", [Faults(hang=1), Faults(latency_s=60)])
def test_a_stop_does_not_wait_for_requests_that_hang(faults: Faults) -> None:
    gateway = a_gateway(faults).start()
    errors: list[Exception] = []

    def ask_in_vain() -> None:
        try:
            ask(gateway, a_body())
        except httpx.HTTPError as error:
            errors.append(error)

    client = threading.Thread(target=ask_in_vain)
    client.start()
    while not gateway.requests:
        time.sleep(0.005)
    started = time.monotonic()
    gateway.stop()
    took = time.monotonic() - started
    client.join()

    assert took < 30
    assert len(errors) == 1
    assert not isinstance(errors[0], httpx.TimeoutException)


def test_latency_delays_a_reply() -> None:
    with a_gateway(Faults(latency_s=0.5, models=("demo/weak",))) as gateway:
        quick, slow = (ask(gateway, a_body(model)) for model in ("demo/strong", "demo/weak"))

    assert slow.elapsed.total_seconds() >= 0.5
    assert quick.elapsed < slow.elapsed


def test_a_model_can_always_answer_with_one_status() -> None:
    with a_gateway(Faults(status={"demo/weak": 402})) as gateway:
        weak, strong = (ask(gateway, a_body(model)) for model in ("demo/weak", "demo/strong"))

    assert weak.status_code == 402
    assert weak.json()["error"]["code"] == "insufficient_credits"
    assert strong.status_code == 200


@pytest.mark.parametrize(
    ("model", "text"), [("demo/strong", QUESTION), ("demo/judge", PROMPT), ("demo/none", "x")]
)
def test_the_key_is_repeated_only_when_told_so(model: str, text: str) -> None:
    with a_gateway(Faults(echo_key=True)) as gateway:
        telling = ask(gateway, a_body(model, text), "sk-secret")
        gateway.misbehave(Faults())
        discreet = ask(gateway, a_body(model, text), "sk-secret")

    assert "sk-secret" in telling.text
    assert "sk-secret" not in discreet.text
    if model == "demo/judge":
        assert json.loads(content(telling))["correct"] is True


def test_faults_can_be_changed_while_it_runs_if_that_was_allowed() -> None:
    with a_gateway(Faults(), allow_control=True) as gateway:
        changed = httpx.post(f"{gateway.base_url}/faults", json={"rate_limited": 1})
        wrong = httpx.post(f"{gateway.base_url}/faults", json={"rate_limited": 2})
        asked = ask(gateway, a_body())
    with a_gateway(Faults()) as strict:
        refused = httpx.post(f"{strict.base_url}/faults", json={"rate_limited": 1})
        unharmed = ask(strict, a_body())

    assert (changed.status_code, wrong.status_code, asked.status_code) == (200, 400, 429)
    assert changed.json()["rate_limited"] == 1
    assert (refused.status_code, unharmed.status_code) == (403, 200)
