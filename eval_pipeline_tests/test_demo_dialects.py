"""The simulated gateway in all dialects over real HTTP, read as the pipeline reads real ones."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx
import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.replies import question_hash
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.gateways.dialects.errors import provider_error
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.model import DialectName
from eval_pipeline.records.outcome import Outcome
from eval_pipeline_tests.test_demo_server import QUESTION, an_item

NAMES: tuple[DialectName, ...] = ("chat_completions", "responses", "messages")
STREAMED = pytest.mark.parametrize("stream", [True, False])
IN_EVERY_DIALECT = pytest.mark.parametrize("dialect", NAMES)
IMAGE = "data:image/png;base64,iVBOR"
PROMPT = "<reference>Oslo</reference><response>Answer: oslo.\nConfidence: 70%</response>"


def a_request(text: str = QUESTION, *, image: bool = False, **changes: Any) -> ChatRequest:
    parts: list[JsonValue] = [{"type": "text", "text": text}]
    if image:
        parts.append({"type": "image_url", "image_url": {"url": IMAGE}})
    said: dict[str, JsonValue] = {"role": "user", "content": parts if image else text}
    return replace(ChatRequest("demo/strong", (said,)), **changes)


def ask(
    gateway: DemoGateway, dialect: DialectName, request: ChatRequest, key: str | None = None
) -> httpx.Response:
    speaks = DIALECTS[dialect]
    url, body = f"{gateway.base_url}/{speaks.path}", speaks.body(request)
    # Without certificates, the loading of which takes longer than all the rest.
    return httpx.post(url, json=body, headers=speaks.headers(key), timeout=60, verify=False)


def events(reply: httpx.Response) -> Iterator[dict[str, Any]]:
    for line in reply.text.split("\n"):
        if line.startswith("data: ") and line != "data: [DONE]":
            yield json.loads(line.removeprefix("data: "))


def read(dialect: DialectName, response: httpx.Response) -> ChatReply | ProviderError:
    if response.status_code != 200:
        return provider_error(response.status_code, response.content, retry_after=None, quote=str)
    collected = DIALECTS[dialect].collect(0.0, str)
    if "event-stream" not in response.headers["content-type"]:
        collected.add_whole(response.json())
        return collected.reply(str)
    for event in events(response):
        collected.add_event(event)
    assert collected.finished
    return collected.reply(str)


def reply_to(gateway: DemoGateway, dialect: DialectName, request: ChatRequest) -> ChatReply:
    reply = read(dialect, ask(gateway, dialect, request))
    assert isinstance(reply, ChatReply), reply
    return reply


@pytest.fixture(scope="module")
def gateway() -> Iterator[DemoGateway]:
    with DemoGateway([an_item()]) as gateway:
        yield gateway


@pytest.mark.parametrize("image", [True, False])
def test_every_dialect_tells_the_same(gateway: DemoGateway, image: bool) -> None:
    told = {"role": "system", "content": "Be brief."}
    messages = (told, *a_request(image=image).messages)

    replies = [
        reply_to(gateway, dialect, a_request(messages=messages, stream=stream))
        for dialect in NAMES
        for stream in (True, False)
    ]

    assert len({reply.text for reply in replies}) == 1
    assert replies[0].text.startswith("Explanation: Simulated reply:")
    assert (replies[0].served_by, replies[0].system_fingerprint) == ("Simulated", "fp_simulated")
    assert {reply.model_reported for reply in replies} == {"demo/strong"}
    assert {(reply.usage.input_tokens, reply.usage.output_tokens) for reply in replies} == {
        (96 if image else 11, replies[0].usage.output_tokens)
    }
    assert {reply.outcome for reply in replies} == {Outcome.OK}
    assert len({reply.generation_id for reply in replies}) == 6


@STREAMED
@pytest.mark.parametrize(
    ("dialect", "reason"),
    [
        ("chat_completions", "length"),
        ("responses", "max_output_tokens"),
        ("messages", "max_tokens"),
    ],
)
def test_a_reply_is_cut_at_the_token_limit(
    gateway: DemoGateway, dialect: DialectName, reason: str, stream: bool
) -> None:
    reply = reply_to(gateway, dialect, a_request(max_tokens=5, stream=stream))

    assert (reply.finish_reason, reply.outcome) == (reason, Outcome.TRUNCATED)
    assert (len(reply.text), reply.usage.output_tokens) == (20, 5)


@STREAMED
@IN_EVERY_DIALECT
def test_the_judge_replies_in_the_schema(
    gateway: DemoGateway, dialect: DialectName, stream: bool
) -> None:
    schema = {"name": "verdict", "schema": {"type": "object"}}
    request = a_request(PROMPT, model="demo/judge", json_schema=schema, stream=stream)

    reply = reply_to(gateway, dialect, request)

    assert json.loads(reply.text)["correct"] is True
    assert reply.outcome is Outcome.OK
    if dialect == "messages":
        assert reply.finish_reason == "tool_use"


@STREAMED
@IN_EVERY_DIALECT
def test_the_judge_calls_the_function_that_it_has_to(
    gateway: DemoGateway, dialect: DialectName, stream: bool
) -> None:
    tool = {"name": "verdict", "schema": {"type": "object"}}
    request = a_request(PROMPT, model="demo/judge", tool=tool, stream=stream)

    response = ask(gateway, dialect, request)

    reply = read(dialect, response)
    assert isinstance(reply, ChatReply)
    assert json.loads(reply.text)["correct"] is True
    assert '"verdict"' in response.text


FORM: dict[str, JsonValue] = {"name": "verdict", "schema": {"type": "object"}}


@pytest.mark.parametrize(
    ("refuses", "statuses"),
    [
        ((), [200, 200, 200]),
        (("json_schema",), [400, 200, 200]),
        (("tool",), [200, 400, 200]),
        (("json_schema", "tool"), [400, 400, 200]),
    ],
)
@pytest.mark.parametrize("dialect", ["chat_completions", "responses"])
def test_a_server_refuses_the_formats_that_it_is_told_to(
    dialect: DialectName, refuses: tuple[Any, ...], statuses: list[int]
) -> None:
    plain = a_request(PROMPT, model="demo/judge")
    requests = [replace(plain, json_schema=FORM), replace(plain, tool=FORM), plain]

    with DemoGateway([], faults=Faults(refuses=refuses, models=("demo/judge",))) as gateway:
        replies = [ask(gateway, dialect, request) for request in requests]
        other = ask(gateway, dialect, a_request(json_schema=FORM))

    assert [reply.status_code for reply in replies] == statuses
    assert other.status_code == 200


def test_a_server_of_messages_knows_a_schema_as_a_tool_only() -> None:
    with DemoGateway([], faults=Faults(refuses=("tool",))) as gateway:
        refused = ask(gateway, "messages", a_request(PROMPT, model="demo/judge", json_schema=FORM))
        taken = ask(gateway, "messages", a_request(PROMPT, model="demo/judge"))

    error = read("messages", refused)
    assert isinstance(error, ProviderError)
    assert (error.outcome, taken.status_code) == (Outcome.BAD_REQUEST, 200)


def test_a_question_counts_the_same_in_every_dialect() -> None:
    with DemoGateway([an_item()], faults=Faults(rate_limited=1, times=1)) as gateway:
        statuses = [ask(gateway, dialect, a_request()).status_code for dialect in NAMES]

    assert statuses == [429, 200, 200]
    assert gateway.seen["demo/strong", question_hash(QUESTION)] == 3


@pytest.mark.parametrize(
    ("faults", "outcome"),
    [
        (Faults(rate_limited=1), Outcome.RATE_LIMITED),
        (Faults(server_error=1), Outcome.SERVER_ERROR),
        (Faults(context_too_long=1), Outcome.CONTEXT_TOO_LONG),
        (Faults(status={"demo/strong": 401}), Outcome.AUTH),
        (Faults(status={"demo/strong": 402}), Outcome.NO_CREDIT),
        (Faults(status={"demo/strong": 404}), Outcome.UNKNOWN_MODEL),
        (Faults(status={"demo/strong": 413}), Outcome.BAD_REQUEST),
    ],
)
@IN_EVERY_DIALECT
def test_a_fault_has_the_same_name_in_every_dialect(
    dialect: DialectName, faults: Faults, outcome: Outcome
) -> None:
    with DemoGateway([], faults=faults) as gateway:
        error = read(dialect, ask(gateway, dialect, a_request()))

    assert isinstance(error, ProviderError)
    assert error.outcome is outcome


@STREAMED
@IN_EVERY_DIALECT
def test_a_cut_reply_breaks_off(dialect: DialectName, stream: bool) -> None:
    with (
        DemoGateway([an_item()], faults=Faults(cut_stream=1)) as gateway,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        ask(gateway, dialect, a_request(stream=stream))


@STREAMED
@IN_EVERY_DIALECT
def test_invalid_json_is_no_json(dialect: DialectName, stream: bool) -> None:
    with DemoGateway([an_item()], faults=Faults(invalid_json=1)) as gateway:
        response = ask(gateway, dialect, a_request(stream=stream))

    with pytest.raises(json.JSONDecodeError):
        read(dialect, response)


@STREAMED
@IN_EVERY_DIALECT
def test_an_empty_reply_is_whole_but_has_no_text(dialect: DialectName, stream: bool) -> None:
    with DemoGateway([an_item()], faults=Faults(empty=1)) as gateway:
        reply = reply_to(gateway, dialect, a_request(stream=stream))

    assert (reply.text, reply.outcome) == ("", Outcome.EMPTY)


@pytest.mark.parametrize(("drip_s", "several"), [(0.02, True), (0, False)])
@IN_EVERY_DIALECT
def test_a_stream_drips_piece_by_piece_if_told_so(
    dialect: DialectName, drip_s: float, several: bool
) -> None:
    speaks = DIALECTS[dialect]
    with (
        DemoGateway([an_item()], faults=Faults(drip_s=drip_s)) as gateway,
        httpx.stream(
            "POST",
            f"{gateway.base_url}/{speaks.path}",
            json=speaks.body(a_request()),
            headers=speaks.headers(None),
        ) as response,
    ):
        pieces = list(response.iter_raw())

    assert (len(pieces) > 3) is several
    assert b"Confidence" in b"".join(pieces)


@IN_EVERY_DIALECT
def test_a_key_is_checked_and_repeated_only_when_told_so(dialect: DialectName) -> None:
    with DemoGateway([an_item()], api_key="right") as gateway:
        keys = (None, "wrong", "right")
        statuses = [ask(gateway, dialect, a_request(), key).status_code for key in keys]
        gateway.misbehave(Faults(echo_key=True))
        whole = a_request(stream=False)
        telling = [ask(gateway, dialect, whole, key).text for key in ("wrong", "right")]

    assert statuses == [401, 401, 200]
    assert "Your key is wrong." in telling[0]
    assert "your key is right;" in telling[1]


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"messages": [{"role": "user", "content": "Hi."}]}, "max_tokens"),
        ({"messages": [], "max_tokens": 1}, "messages"),
        ({"messages": [{"role": "system", "content": "Hi."}], "max_tokens": 1}, "messages.0.role"),
    ],
)
def test_a_malformed_message_is_explained_in_the_shape_of_its_dialect(
    gateway: DemoGateway, body: dict[str, JsonValue], complaint: str
) -> None:
    headers = DIALECTS["messages"].headers(None)
    url = f"{gateway.base_url}/messages"

    refused = httpx.post(url, json={"model": "demo/strong", **body}, headers=headers).json()

    assert refused["type"] == "error"
    assert refused["error"]["type"] == "invalid_request_error"
    assert complaint in refused["error"]["message"]


def test_messages_need_the_version_of_the_api(gateway: DemoGateway) -> None:
    body = DIALECTS["messages"].body(a_request())

    refused = httpx.post(f"{gateway.base_url}/messages", json=body)

    assert refused.status_code == 400
    assert "anthropic-version" in refused.json()["error"]["message"]
