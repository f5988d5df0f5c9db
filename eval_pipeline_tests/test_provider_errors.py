"""What servers say when they refuse, named: a table of real wordings."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ProviderError
from eval_pipeline.gateways.dialects.errors import provider_error, reply_error
from eval_pipeline.records.outcome import Outcome
from eval_pipeline_tests.any_json import objects_of

TRANSIENT = {Outcome.TIMEOUT, Outcome.RATE_LIMITED, Outcome.SERVER_ERROR}


def refused(status: int, body: bytes | JsonValue, quote: object = str) -> ProviderError:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    assert callable(quote)
    return provider_error(status, data, retry_after=None, quote=quote)


def an_error(message: str = "No.", **more: JsonValue) -> JsonValue:
    return {"error": {"message": message, **more}}


def anthropic(kind: str, message: str = "No.") -> JsonValue:
    return {"type": "error", "error": {"type": kind, "message": message}}


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (301, Outcome.BAD_REQUEST),
        (400, Outcome.BAD_REQUEST),
        (401, Outcome.AUTH),
        (402, Outcome.NO_CREDIT),
        (403, Outcome.FORBIDDEN),
        (404, Outcome.UNKNOWN_MODEL),
        (408, Outcome.TIMEOUT),
        (413, Outcome.BAD_REQUEST),
        (422, Outcome.BAD_REQUEST),
        (429, Outcome.RATE_LIMITED),
        (500, Outcome.SERVER_ERROR),
        (503, Outcome.SERVER_ERROR),
        (529, Outcome.SERVER_ERROR),
    ],
)
@pytest.mark.parametrize("body", [b"", b"No.", b"<p>No.", an_error(), {"detail": "No."}, [], "No."])
def test_a_status_has_a_name(status: int, outcome: Outcome, body: bytes | JsonValue) -> None:
    error = refused(status, body)

    assert (error.outcome, error.transient) == (outcome, outcome in TRANSIENT)
    assert str(error).startswith(f"HTTP {status}: ")


TOO_LONG = "This model's maximum context length is 8192 tokens. However, you requested 9000."


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (400, an_error(code="context_length_exceeded"), Outcome.CONTEXT_TOO_LONG),
        (400, an_error(code="string_above_max_length"), Outcome.CONTEXT_TOO_LONG),
        (400, an_error(type="exceed_context_size_error"), Outcome.CONTEXT_TOO_LONG),
        (400, an_error(TOO_LONG, code=400), Outcome.CONTEXT_TOO_LONG),
        (400, {"object": "error", "message": TOO_LONG, "code": 400}, Outcome.CONTEXT_TOO_LONG),
        (413, an_error(TOO_LONG), Outcome.CONTEXT_TOO_LONG),
        (413, an_error("The request is too large."), Outcome.BAD_REQUEST),
        (
            400,
            anthropic("invalid_request_error", "prompt is too long: 210000 tokens > 200000"),
            Outcome.CONTEXT_TOO_LONG,
        ),
        (
            400,
            anthropic(
                "invalid_request_error", "input length and `max_tokens` exceed context limit: 1 + 2"
            ),
            Outcome.CONTEXT_TOO_LONG,
        ),
        (400, an_error("Your input exceeds the context window."), Outcome.CONTEXT_TOO_LONG),
        (400, an_error("litellm.ContextWindowExceededError: no"), Outcome.CONTEXT_TOO_LONG),
        (
            400,
            [{"error": {"code": 400, "message": "It exceeds the maximum number of tokens."}}],
            Outcome.CONTEXT_TOO_LONG,
        ),
        (
            400,
            an_error("Provider returned error", metadata={"raw": json.dumps({"e": TOO_LONG})}),
            Outcome.CONTEXT_TOO_LONG,
        ),
        (429, an_error("Of the context window, too many tokens."), Outcome.RATE_LIMITED),
        (503, an_error("No context window is free."), Outcome.SERVER_ERROR),
        (400, an_error(code="model_not_found"), Outcome.UNKNOWN_MODEL),
        (403, an_error(code="model_not_found"), Outcome.UNKNOWN_MODEL),
        (400, an_error("maker/none is not a valid model ID", code=400), Outcome.UNKNOWN_MODEL),
        (400, an_error("The model `none` does not exist."), Outcome.UNKNOWN_MODEL),
        (429, an_error(code="insufficient_quota"), Outcome.NO_CREDIT),
        (429, an_error(type="insufficient_quota", code=None), Outcome.NO_CREDIT),
        (
            400,
            anthropic("invalid_request_error", "Your credit balance is too low to access it."),
            Outcome.NO_CREDIT,
        ),
        (403, anthropic("billing_error"), Outcome.NO_CREDIT),
        (400, an_error(code="invalid_api_key"), Outcome.AUTH),
        (403, an_error(code="invalid_api_key"), Outcome.AUTH),
        (400, an_error("API key not valid. Please pass a valid API key."), Outcome.AUTH),
        (401, anthropic("authentication_error", "invalid x-api-key"), Outcome.AUTH),
        (400, an_error(code="content_filter"), Outcome.CONTENT_FILTER),
        (403, an_error(code="moderation"), Outcome.CONTENT_FILTER),
        (403, an_error(code=403, metadata={"reasons": ["violence"]}), Outcome.CONTENT_FILTER),
        (403, an_error("Your input was flagged."), Outcome.CONTENT_FILTER),
        (403, an_error(code=403, metadata={"reasons": []}), Outcome.FORBIDDEN),
        (403, anthropic("permission_error"), Outcome.FORBIDDEN),
        (400, an_error("Flagged as unknown: top_q."), Outcome.BAD_REQUEST),
        (529, anthropic("overloaded_error", "Overloaded"), Outcome.SERVER_ERROR),
        (400, anthropic("overloaded_error", "Overloaded"), Outcome.SERVER_ERROR),
        (429, anthropic("rate_limit_error"), Outcome.RATE_LIMITED),
        (500, anthropic("api_error"), Outcome.SERVER_ERROR),
        (404, anthropic("not_found_error", "model: none"), Outcome.UNKNOWN_MODEL),
    ],
)
def test_an_error_can_say_it_better_than_the_status(
    status: int, body: JsonValue, outcome: Outcome
) -> None:
    error = refused(status, body)

    assert (error.outcome, error.transient) == (outcome, outcome in TRANSIENT)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"Not now.", "Not now."),
        (b"\xff!", "\ufffd!"),
        (an_error("Not now."), "Not now."),
        ({"error": "Not now."}, "Not now."),
        ({"message": "Not now.", "code": 400}, "Not now."),
        ({"detail": "\u00e9\U0001f600"}, '{"detail": "\u00e9\U0001f600"}'),
        (an_error("It said", metadata={"raw": "Not now."}), "It said: Not now."),
        (an_error("It said", metadata={"raw": '{"a": "\\u00e9"}'}), 'It said: {"a": "\u00e9"}'),
        ({"error": {"message": ["Not", "now"]}}, '{"message": ["Not", "now"]}'),
    ],
)
def test_the_words_of_the_server_are_quoted(body: bytes | JsonValue, words: str) -> None:
    assert str(refused(400, body)) == f"HTTP 400: {words}"
    assert str(refused(400, body, lambda text: f"<{len(text)}>")) == f"HTTP 400: <{len(words)}>"


def test_layers_upon_layers_are_an_error_like_any_other() -> None:
    bodies = [b'{"error":' * depth + b"1" + b"}" * depth for depth in range(800, 1000)]

    assert {refused(500, body).outcome for body in bodies} == {Outcome.SERVER_ERROR}


def test_when_to_come_again_is_kept() -> None:
    error = provider_error(429, b"", retry_after=1.5, quote=str)

    assert error.retry_after == 1.5


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ({"code": 429}, Outcome.RATE_LIMITED),
        ({"code": "429"}, Outcome.RATE_LIMITED),
        ({"code": 402}, Outcome.NO_CREDIT),
        ({"code": 200}, Outcome.SERVER_ERROR),
        ({"code": True}, Outcome.SERVER_ERROR),
        ({"code": "invalid_api_key"}, Outcome.AUTH),
        ({"code": 400, "message": TOO_LONG}, Outcome.CONTEXT_TOO_LONG),
        ({"code": 403, "metadata": {"reasons": ["hate"]}}, Outcome.CONTENT_FILTER),
        ({"type": "overloaded_error"}, Outcome.SERVER_ERROR),
        ("Oh.", Outcome.SERVER_ERROR),
        (True, Outcome.SERVER_ERROR),
    ],
)
def test_an_error_in_a_reply_has_a_name_too(error: JsonValue, outcome: Outcome) -> None:
    raised = reply_error(error, str)

    assert (raised.outcome, raised.transient) == (outcome, outcome in TRANSIENT)
    assert str(raised).startswith("Error in the reply: ")


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    status=st.integers(min_value=100, max_value=599).filter(lambda status: status != 200),
    body=st.binary(max_size=50)
    | objects_of("error message code type metadata raw reasons 400 moderation").map(
        lambda value: json.dumps(value).encode()
    ),
)
def test_any_body_gives_an_error(status: int, body: bytes) -> None:
    error = provider_error(status, body, retry_after=None, quote=str)

    assert str(error).startswith(f"HTTP {status}: ")
    assert reply_error(body.decode("utf-8", "replace"), str).transient
