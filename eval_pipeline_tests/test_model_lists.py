"""Model lists: every dialect is read, and a bad entry is lost alone."""

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any, get_args

import pytest

from eval_pipeline.gateways.model_lists import (
    CatalogError,
    ModelList,
    parse_model_list,
    static_models,
)
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.settings.gateway import Gateway, GatewayKind, StaticModel

AUGUST_7 = datetime(2025, 8, 7, tzinfo=UTC)

ENDPOINT = json.loads("""{
    "pricing_completion": "10", "pricing_prompt": "1.25", "context_length": 400000,
    "provider": "OpenAI", "provider_slug": "openai", "max_completion_tokens": 128000,
    "supports_streaming": true, "supports_reasoning": true, "supports_tool_parameters": true,
    "supported_parameters": ["temperature", "max_tokens", "response_format"],
    "can_abort": true, "visible": 1, "suitable_api": "chat.completions"}""")
ZENMUX = json.loads("""{
    "id": "66b1", "name": "OpenAI: GPT-5", "description": "A model.", "author": "openai",
    "slug": "openai/gpt-5", "input_modalities": ["text", "image"], "visible": 1,
    "publish_time": "2025-08-07T00:00:00Z", "icon_url": "https://example.org/icon.svg"}""")
DOCUMENTED = json.loads("""{
    "id": "anthropic/claude-sonnet-4.5", "display_name": "Anthropic: Claude Sonnet 4.5",
    "created": 1754524800, "owned_by": "anthropic", "input_modalities": ["text", "image"],
    "context_length": 1000000, "pricings": {
        "prompt": [{"value": 3, "unit": "perMTokens", "currency": "USD"}, {"value": 6}],
        "completion": [{"value": 15, "unit": "perMTokens", "currency": "USD"}],
        "input_cache_read": [{"value": 0.3, "unit": "perMTokens", "currency": "USD"}]}}""")
OPENROUTER = json.loads("""{
    "id": "openai/gpt-5", "name": "OpenAI: GPT-5", "created": 1754524800, "context_length": 400000,
    "architecture": {"input_modalities": ["text", "image"], "tokenizer": "GPT"},
    "pricing": {"prompt": "0.00000125", "completion": "0.00001", "request": "0",
        "input_cache_read": "0.000000125"},
    "top_provider": {"max_completion_tokens": 128000, "is_moderated": true},
    "supported_parameters": ["max_tokens", "structured_outputs"]}""")
HOSTILE_IDS = json.loads(r"""[
    "../../etc/passwd", "a/../b", "a/..", "/etc/passwd", "a//b", "a/b,c", "a/b\nc", "a/b\n",
    "a/\u0000b", "a/\u001b[31mb", "a/\u202eb", "a/\ud800", "", " ", 7, null, NaN, 1e999,
    ["a/b"], {"a": "b"}]""")

every_kind = pytest.mark.parametrize("kind", get_args(GatewayKind))


def a_gateway(kind: GatewayKind, **more: Any) -> Gateway:
    return Gateway(**({"name": kind, "kind": kind} | more))


an_endpoint: Callable[..., dict[str, Any]] = partial(dict, ENDPOINT)
an_openrouter_entry: Callable[..., dict[str, Any]] = partial(dict, OPENROUTER)


def a_zenmux_entry(*endpoints: object, **more: Any) -> dict[str, Any]:
    return {**ZENMUX, "endpoints": endpoints or (ENDPOINT,), **more}


def read(kind: GatewayKind, *entries: object, **more: Any) -> ModelList:
    return parse_model_list(a_gateway(kind), {"data": list(entries)} | more)


def the_model(kind: GatewayKind, *entries: object) -> Model:
    models, warnings = read(kind, *entries)
    assert (len(models), warnings) == (1, ())
    return models[0]


def test_a_visible_zenmux_endpoint_is_a_model() -> None:
    models, warnings = read("zenmux", a_zenmux_entry(), success=True)

    expected = Model(
        id="openai/gpt-5:openai",
        gateway="zenmux",
        request_name="openai/gpt-5:openai",
        vendor="openai",
        name="gpt-5",
        provider="openai",
        display_name="OpenAI: GPT-5",
        input_modalities=("text", "image"),
        context_length=400000,
        max_output_tokens=128000,
        prices=Prices(prompt=1.25 / 1e6, completion=10 / 1e6),
        created_at=AUGUST_7,
    )
    assert (models, warnings) == ((expected,), ())


def test_what_zenmux_hides_is_not_a_model() -> None:
    entry = a_zenmux_entry(an_endpoint(visible=0), an_endpoint(provider_slug="azure"))

    model = the_model("zenmux", entry, a_zenmux_entry(visible=0))

    assert model.id == "openai/gpt-5:azure"


def test_an_unreadable_endpoint_is_lost_alone() -> None:
    entry = a_zenmux_entry({}, "nonsense", ENDPOINT, an_endpoint(provider_slug="a/b"))

    models, warnings = read("zenmux", entry)

    assert [model.id for model in models] == ["openai/gpt-5:openai"]
    assert warnings[0].startswith("Gateway 'zenmux': endpoint 1 of entry 'openai/gpt-5' is left")
    assert len(warnings) == 3


def test_zenmuxs_documented_list_is_read_too() -> None:
    model = the_model("zenmux", DOCUMENTED)

    assert model.id == model.request_name == "anthropic/claude-sonnet-4.5"
    assert (model.provider, model.display_name) == (None, "Anthropic: Claude Sonnet 4.5")
    assert model.prices == Prices(prompt=3 / 1e6, completion=15 / 1e6, cached=0.3 / 1e6)


@pytest.mark.parametrize(
    "entry",
    [
        {**DOCUMENTED, "pricings": {"prompt": [{"value": 3, "unit": "perSecond"}]}},
        {**DOCUMENTED, "pricings": {"prompt": [{"value": 3, "currency": "CNY"}]}},
        a_zenmux_entry(an_endpoint(pricing_prompt="-1", pricing_completion=None)),
    ],
)
def test_a_zenmux_price_of_no_use_is_unknown_and_said(entry: object) -> None:
    models, (warning,) = read("zenmux", entry)

    assert models[0].prices == Prices()
    assert "no usable prompt price" in warning


def test_an_openrouter_entry_is_a_model_without_provider() -> None:
    model = the_model("openrouter", an_openrouter_entry(id="openai/gpt-5:free"))

    assert model.id == model.request_name == "openai/gpt-5:free"
    assert (model.vendor, model.name, model.provider) == ("openai", "gpt-5:free", None)
    assert model.prices == Prices(prompt=1.25e-6, completion=1e-5, request=0, cached=1.25e-7)
    assert (model.temperature, model.json_schema) == (False, True)
    assert (model.sees_images, model.max_output_tokens) == (True, 128000)


@pytest.mark.parametrize(
    ("parameters", "temperature", "json_schema"),
    [
        (None, True, True),
        ([], True, True),
        (["temperature"], True, False),
        (["response_format"], False, True),
        (["max_tokens"], False, False),
    ],
)
@every_kind
def test_what_a_model_supports_follows_from_its_parameters(
    kind: GatewayKind, parameters: list[str] | None, temperature: bool, json_schema: bool
) -> None:
    zenmux = a_zenmux_entry(an_endpoint(supported_parameters=parameters))
    other = an_openrouter_entry(supported_parameters=parameters)

    model = the_model(kind, zenmux if kind == "zenmux" else other)

    assert (model.temperature, model.json_schema) == (temperature, json_schema)


@pytest.mark.parametrize(
    ("said", "vendor", "name"),
    [
        ("llama3:8b", "ollama", "llama3:8b"),
        ("meta/llama3:8b", "meta", "llama3:8b"),
    ],
)
def test_a_colon_in_the_name_of_another_server_is_no_provider(
    said: str, vendor: str, name: str
) -> None:
    payload = {"object": "list", "data": [{"id": said, "object": "model", "owned_by": "library"}]}

    (model,), _ = parse_model_list(a_gateway("openai", name="ollama"), payload)

    assert (model.id, model.request_name) == (f"{vendor}/{name}", said)
    assert (model.vendor, model.name, model.provider) == (vendor, name, None)
    assert (model.input_modalities, model.prices) == (("text",), Prices())


def test_another_server_may_send_what_openrouter_sends() -> None:
    model = the_model("openai", an_openrouter_entry(id="gpt-5"))

    assert (model.id, model.sees_images, model.prices.prompt) == ("openai/gpt-5", True, 1.25e-6)


@pytest.mark.parametrize(
    ("kind", "said", "simulated"),
    [("demo", {}, True), ("openai", {"simulated": True}, True), ("openai", {}, False)],
)
def test_a_simulated_model_is_known_as_such_whatever_its_gateway_is_taken_for(
    kind: GatewayKind, said: dict[str, bool], simulated: bool
) -> None:
    model = the_model(kind, an_openrouter_entry(system_role=False, **said))

    assert (model.simulated, model.system_role) == (simulated, False)


def test_static_models_come_from_the_settings() -> None:
    priced = StaticModel(id="openai/gpt-5:azure", prices=Prices(prompt=1))
    named = StaticModel(id="own/model", request_name="m", provider="me", display_name="Mine")

    pinned, own = static_models(a_gateway("zenmux", models=(priced, named)))
    (plain,) = static_models(a_gateway("openai", models=(StaticModel(id="ollama/llama3:8b"),)))

    assert (pinned.name, pinned.provider, pinned.prices.prompt) == ("gpt-5", "azure", 1)
    assert pinned.request_name == pinned.display_name == "openai/gpt-5:azure"
    assert (own.request_name, own.display_name, own.provider) == ("m", "Mine", "me")
    assert (plain.name, plain.provider) == ("llama3:8b", None)


ISO = ("2025-08-07T00:00:00Z", "2025-08-07T02:00:00+02:00", "2025-08-07", "2025-08-07 at noon")
EPOCH = (1754524800, 1754524800000, "1754524800")
NO_MOMENT = (0, -5, 1e300, 10**400, math.nan, True, "soon", "9" * 20, ["2025-08-07"], None)


@pytest.mark.parametrize(
    ("stated", "moment"),
    [(stated, AUGUST_7) for stated in ISO + EPOCH]
    + [(stated, None) for stated in (*NO_MOMENT, "0001-01-01T00:00:00+14:00")],
)
def test_a_moment_is_read_where_possible(stated: object, moment: datetime | None) -> None:
    assert the_model("zenmux", a_zenmux_entry(publish_time=stated)).created_at == moment


@pytest.mark.parametrize(
    "price", ["free", True, {}, math.nan, "NaN", math.inf, "-3", -0.5, 1e300, 10**400, "9" * 10_000]
)
def test_a_price_that_is_none_is_unknown_and_said(price: object) -> None:
    models, (warning,) = read("openrouter", an_openrouter_entry(pricing={"prompt": price}))

    assert models[0].prices == Prices()
    assert warning.startswith("Gateway 'openrouter': entry 'openai/gpt-5' has no usable prompt")


@pytest.mark.parametrize("price", ["-1", -1, -1.0, None, ""])
def test_a_variable_or_missing_price_is_unknown_silently(price: object) -> None:
    entry = an_openrouter_entry(pricing={"completion": price})

    assert the_model("openrouter", entry).prices == Prices()


@pytest.mark.parametrize("payload", [None, 7, "models", {}, {"data": None}, {"data": {}}])
@every_kind
def test_what_is_no_list_is_refused_in_one_sentence(kind: GatewayKind, payload: object) -> None:
    with pytest.raises(CatalogError, match=f"^Gateway '{kind}' did not answer with a list of"):
        parse_model_list(a_gateway(kind), payload)


def test_a_list_without_success_is_refused() -> None:
    with pytest.raises(CatalogError, match="says that it can not list its models"):
        read("zenmux", a_zenmux_entry(), success=False)


@pytest.mark.parametrize("bad", [*HOSTILE_IDS, "a/" + "b" * 10_000], ids=lambda bad: ascii(bad)[:9])
@every_kind
def test_a_hostile_id_loses_only_its_own_entry(kind: GatewayKind, bad: object) -> None:
    entry = a_zenmux_entry(slug=bad, id=bad) if kind == "zenmux" else an_openrouter_entry(id=bad)

    models, (warning,) = read(kind, {"id": "good/model"}, entry, {"id": "good/other"})

    assert [model.id for model in models] == ["good/model", "good/other"]
    assert warning.startswith(f"Gateway '{kind}': entry ")
    assert (warning.isprintable(), len(warning) < 250) == (True, True)


@pytest.mark.parametrize(
    "entry",
    [None, 7, "openai/gpt-5", [], [[[[]]]], {}]
    + [an_openrouter_entry(context_length=bad) for bad in ("long", -1, 10**30, math.inf, [1])]
    + [an_openrouter_entry(supported_parameters=bad) for bad in ({"a": 1}, [["a"]], ["x"] * 9999)]
    + [an_openrouter_entry(input_modalities=bad) for bad in ("text", ["x" * 10_000], ["a b"], [1])]
    + [an_openrouter_entry(name={"en": "GPT"})],
)
def test_an_entry_of_a_wrong_shape_loses_only_itself(entry: object) -> None:
    models, (warning,) = read("openrouter", entry, an_openrouter_entry(id="good/model"))

    assert [model.id for model in models] == ["good/model"]
    assert ("is left out: " in warning, len(warning) < 250) == (True, True)


def test_an_entry_without_a_name_is_called_by_its_number() -> None:
    _, warnings = read("openrouter", an_openrouter_entry(), {"id": 7}, None)

    assert warnings == (
        "Gateway 'openrouter': entry number 2 is left out: id: Input should be a valid string.",
        "Gateway 'openrouter': entry number 3 is left out: it: must be an object.",
    )


def test_a_display_name_is_made_short_and_printable() -> None:
    hostile = "GPT\x1b[31m\n\ud800\u202e5" + "!" * 10_000

    name = the_model("openrouter", an_openrouter_entry(name=hostile)).display_name

    assert (name[:12], len(name)) == ("GPT[31m 5!!!", 80)
