"""Keys in the wrong place, replies made to break the reader: a sentence, no leak, no crash."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.limits import RetryPolicy, parse_retry_after
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.records.base import now
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Usage
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import a_prediction, ask, settings_in
from eval_pipeline_tests.wire import http, reply_to

KEY = "sk-live-0123456789"


def complete(
    *bodies: bytes, stream: bool = False, settings: Settings | None = None, status: int = 200
) -> ChatReply:
    kind = "text/event-stream" if stream else "application/json"
    sends = http(b"".join(bodies), kind, status)
    return reply_to(sends, settings.redact if settings else str)


def event(**choice: JsonValue) -> bytes:
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    "changes",
    [
        {"api_key": KEY},
        {KEY: "yes"},
        {"gateways": [{"name": "demo", "kind": "demo", "api_key": KEY}]},
        {"gateways": [{"name": "demo", "kind": KEY}]},
        {"gateways": [{"name": "demo", "kind": "openai", "base_url": f"ftp://me:{KEY}@host"}]},
        {"keys": {"ZENMUX_API_KEY": KEY}},
    ],
)
def test_a_key_written_into_the_settings_file_is_not_repeated(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(SettingsError) as refused:
        settings_in(tmp_path, **changes)

    assert KEY not in str(refused.value)
    assert str(refused.value).startswith("eval_pipeline.toml: ")


@pytest.mark.parametrize("key", ["two\nlines-0123", "schlüssel-0123", "bell\x07-0123456"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(tmp_path: Path, key: str) -> None:
    settings_in(tmp_path)

    with pytest.raises(SettingsError, match="ZENMUX_API_KEY: must be one line") as refused:
        Settings.from_env(
            {"EVALS_SETTINGS": str(tmp_path / "eval_pipeline.toml"), "ZENMUX_API_KEY": key}
        )

    assert key not in str(refused.value)


def with_keys(folder: Path, **keys: str) -> Settings:
    settings_in(folder)
    return Settings.from_env({"EVALS_SETTINGS": str(folder / "eval_pipeline.toml"), **keys})


def test_a_key_that_begins_with_another_goes_as_a_whole(tmp_path: Path) -> None:
    settings = with_keys(tmp_path, HF_TOKEN="sk-abcdef", OPENAI_API_KEY="sk-abcdef-SECRET")

    assert settings.redact("sk-abcdef-SECRET sk-abcdef") == "[OPENAI_API_KEY] [HF_TOKEN]"


@pytest.mark.parametrize("key", [KEY, 'sk-"quoted"\\-0123', "sk-a+b/c=0123456"])
@pytest.mark.parametrize("wrap", ["detail", "list", "escaped", "plain"])
def test_a_key_in_an_error_of_any_shape_is_cut_out(tmp_path: Path, key: str, wrap: str) -> None:
    settings = with_keys(tmp_path, OPENAI_API_KEY=key)
    body = {
        "detail": json.dumps({"detail": key}),
        "list": json.dumps({"error": {"message": ["wrong", key]}}),
        "escaped": json.dumps({"detail": key}).replace("s", "\\u0073"),
        "plain": f"the key {key} is wrong",
    }[wrap]

    with pytest.raises(ProviderError) as refused:
        complete(body.encode(), settings=settings, status=401)

    said = str(refused.value)
    assert key not in said and json.dumps(key)[1:-1] not in said
    assert "[OPENAI_API_KEY]" in said


@pytest.mark.parametrize(
    ("halves", "kept"),
    [
        (("\ud83d", "\ude00"), "😀"),
        (("\ud83d", " alone"), "\ufffd alone"),
        (("a\udc00", "b"), "a\ufffdb"),
    ],
)
def test_a_character_split_over_two_chunks_is_joined_and_a_lone_half_can_be_journalled(
    halves: tuple[str, str], kept: str
) -> None:
    chunks = [event(delta={"content": half}) for half in halves]
    end = event(delta={}, finish_reason="stop")

    reply = complete(*chunks, end, stream=True)

    assert reply.text == kept
    assert kept in a_prediction(answer=reply.text).model_dump_json()


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b'{"a":' * 100_000, b"\xff\xfe", b"null", b"[]", b'"text"']
)
def test_a_body_that_is_no_reply_is_an_invalid_reply(body: bytes) -> None:
    with pytest.raises(ProviderError) as refused:
        complete(body)

    assert refused.value.outcome is Outcome.INVALID_REPLY


@pytest.mark.parametrize("stream", [True, False])
def test_a_reply_that_the_server_ends_with_an_error_is_no_answer(stream: bool) -> None:
    if stream:
        parts = [event(delta={"content": "The answer is"}), event(delta={}, finish_reason="error")]
    else:
        choice = {"message": {"content": "The answer is"}, "error": {"code": 502}}
        parts = [json.dumps({"choices": [choice]}).encode()]

    with pytest.raises(ProviderError) as refused:
        complete(*parts, stream=stream)

    assert refused.value.outcome is Outcome.SERVER_ERROR
    assert refused.value.transient


def test_content_in_parts_is_read_as_text() -> None:
    parts = [{"type": "text", "text": "forty-"}, {"type": "image"}, {"type": "text", "text": "two"}]
    body = json.dumps({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]})

    assert complete(body.encode()).text == "forty-two"


def test_a_date_beyond_the_calendar_is_no_time_to_wait() -> None:
    assert parse_retry_after("Wed, 01 Jan 99999999999999999999 00:00:10 GMT", now()) is None


def test_ever_so_many_attempts_still_have_a_longest_wait() -> None:
    policy = RetryPolicy(attempts=5000, first_wait_s=1, longest_wait_s=60, total_s=1000)

    assert policy.wait_after(4000, transient=True, retry_after=None, jitter=1.0, elapsed_s=0) == 60


@pytest.mark.parametrize(
    ("gateway", "variable"),
    [
        ({"kind": "openai"}, "OPENAI_API_KEY"),
        ({"kind": "openai", "base_url": "http://127.0.0.1:8000/v1"}, None),
        ({"kind": "openai", "base_url": "http://h/v1", "api_key_variable": "MINE"}, "MINE"),
        ({"kind": "openrouter", "base_url": "http://h/v1"}, None),
    ],
)
def test_a_server_of_ones_own_is_not_sent_the_key_of_a_public_gateway(
    tmp_path: Path, gateway: dict[str, str], variable: str | None
) -> None:
    settings = settings_in(tmp_path, gateways=[{"name": "one", **gateway}])

    assert settings.gateways[0].key_variable == variable


@pytest.mark.parametrize(
    ("list_url", "sent"),
    [
        (None, True),
        ("https://zenmux.ai/api/frontend/model/available/list", True),
        ("https://elsewhere.example/models", False),
    ],
)
def test_a_list_of_models_on_another_host_does_not_get_the_key(
    tmp_path: Path, list_url: str | None, sent: bool
) -> None:
    given = {"name": "zenmux", "kind": "zenmux"} | ({"models_url": list_url} if list_url else {})
    settings_in(tmp_path, gateways=[given])
    path = str(tmp_path / "eval_pipeline.toml")
    settings = Settings.from_env({"EVALS_SETTINGS": path, "ZENMUX_API_KEY": KEY})

    async def headers() -> httpx.Headers:
        (zenmux,) = settings.gateways
        async with Gateways(settings) as gateways, gateways.lent_client(zenmux) as client:
            return client.headers

    assert ("authorization" in asyncio.run(headers())) is sent


class Wordless:
    """A model that thinks, is paid for it, and says nothing at first."""

    def __init__(self, empty: int) -> None:
        self.empty = empty

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.empty -= 1
        usage = Usage(input_tokens=10, output_tokens=100, cost_usd=0.5, cost_estimated=False)
        return ChatReply(text="" if self.empty >= 0 else "42", usage=usage, latency_s=1)


@pytest.mark.parametrize(("empty", "paid"), [(0, 1), (2, 3), (9, 4)])
def test_empty_replies_are_paid_for_and_counted(empty: int, paid: int) -> None:
    policy = RetryPolicy(attempts=4, first_wait_s=0, longest_wait_s=0, total_s=60)

    asked = asyncio.run(ask(Wordless(empty), ChatRequest(model="m", messages=()), policy))

    assert asked.attempts == paid
    assert asked.usage == Usage(
        input_tokens=10 * paid, output_tokens=100 * paid, cost_usd=0.5 * paid, cost_estimated=False
    )


@pytest.mark.parametrize("name", ["model", "messages", "stream"])
def test_an_experiment_can_not_ask_another_model_under_the_same_name(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(SettingsError, match=f"extra must not set {name}"):
        settings_in(tmp_path, experiments={"default": {"extra": {name: "demo/average"}}})


@pytest.mark.parametrize("changes", [{"bogus": {"a": 1}}, {"hub_endpoint": {"a": 1}}, {"plan": 3}])
def test_a_launch_that_changes_what_is_not_there_is_refused(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(SettingsError, match="run config: "):
        settings_in(tmp_path).overridden(changes)
