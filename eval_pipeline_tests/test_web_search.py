"""Models that can search the web are known as such, and are asked to in each dialect's words."""

from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest, ProviderError
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.gateways.model_lists import parse_model_list, static_models
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.model import DialectName
from eval_pipeline.settings.gateway import Gateway, StaticModel
from eval_pipeline_tests.builders import a_model, settings_in
from eval_pipeline_tests.test_demo_dialects import (
    IN_EVERY_DIALECT,
    STREAMED,
    a_request,
    ask,
    read,
)
from eval_pipeline_tests.test_demo_server import an_item
from eval_pipeline_tests.test_model_lists import (
    DOCUMENTED,
    a_zenmux_entry,
    an_endpoint,
    an_openrouter_entry,
    the_model,
)

SCHEMA: dict[str, JsonValue] = {"name": "verdict", "schema": {"type": "object"}}
SEARCH: dict[DialectName, dict[str, JsonValue]] = {
    "chat_completions": {"web_search_options": {"search_context_size": "medium"}},
    "responses": {"tools": [{"type": "web_search"}]},
    "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]},
}


@IN_EVERY_DIALECT
def test_a_search_is_all_that_is_added_to_a_request(dialect: DialectName) -> None:
    request = a_request()

    body = DIALECTS[dialect].body(replace(request, web_search=True))

    assert body == DIALECTS[dialect].body(request) | SEARCH[dialect]


@pytest.mark.parametrize("dialect", ["responses", "messages"])
def test_a_function_to_be_called_stays_among_the_tools(dialect: DialectName) -> None:
    request = a_request(tool=SCHEMA)

    body = DIALECTS[dialect].body(replace(request, web_search=True))

    before = DIALECTS[dialect].body(request)
    tools, added = before["tools"], SEARCH[dialect]["tools"]
    assert isinstance(tools, list)
    assert isinstance(added, list)
    assert body == before | {"tools": [*tools, *added]}


def test_two_bodies_do_not_share_what_they_say_about_searching() -> None:
    dialect = DIALECTS["chat_completions"]
    request = a_request(web_search=True)

    options = dialect.body(request)["web_search_options"]
    assert isinstance(options, dict)
    options.clear()

    assert dialect.body(request)["web_search_options"] == {"search_context_size": "medium"}


def test_a_request_without_search_has_the_fingerprint_it_always_had() -> None:
    request = ChatRequest("maker/one", ({"role": "user", "content": "Hi"},))

    hashes = [fingerprint(replace(request, web_search=on).fields()) for on in (False, True)]

    assert "web_search" not in request.fields()
    assert hashes[0] == "c2284d32f73a980e"
    assert hashes[1] != hashes[0]


@pytest.mark.parametrize("name", ["web_search_options", "web_search"])
def test_a_list_says_who_can_search(name: str) -> None:
    parameters = ["max_tokens", name]

    openrouter = the_model("openrouter", an_openrouter_entry(supported_parameters=parameters))
    zenmux = the_model("zenmux", a_zenmux_entry(an_endpoint(supported_parameters=parameters)))

    assert (openrouter.web_search, zenmux.web_search) == (True, True)


def test_who_is_not_said_to_search_can_not() -> None:
    silent = an_openrouter_entry(supported_parameters=None)

    models = [
        the_model("openrouter", an_openrouter_entry()),
        the_model("openrouter", silent),
        the_model("zenmux", a_zenmux_entry()),
        the_model("zenmux", DOCUMENTED),
        the_model("anthropic", {"id": "claude", "type": "model"}),
    ]

    assert [model.web_search for model in models] == [False] * 5


def test_a_price_for_searching_says_that_a_zenmux_model_can() -> None:
    price = {"value": 0.01, "unit": "perCount", "currency": "USD"}
    entry = DOCUMENTED | {"pricings": DOCUMENTED["pricings"] | {"web_search": [price]}}

    model = the_model("zenmux", entry)

    assert model.web_search
    assert model.prices == the_model("zenmux", DOCUMENTED).prices


def test_a_model_of_the_settings_says_by_itself_whether_it_can_search() -> None:
    models = (StaticModel(id="a/one", web_search=True), StaticModel(id="a/two"))

    one, two = static_models(Gateway(name="own", kind="openai", models=models))

    assert (one.web_search, two.web_search) == (True, False)


@pytest.mark.parametrize("known", [True, False])
def test_an_override_knows_better_than_the_list(tmp_path: Path, known: bool) -> None:
    model = a_model("maker/one", web_search=not known)
    settings = settings_in(tmp_path, overrides={"maker/one": {"web_search": known}})

    listed = settings.override(model).listed()

    assert listed == {"web_search": known}


def test_a_model_from_before_there_was_search_is_still_read() -> None:
    earlier = a_model().model_dump(mode="json", exclude={"web_search"})

    assert type(a_model()).model_validate(earlier).web_search is False


@IN_EVERY_DIALECT
@STREAMED
def test_the_strong_simulated_model_takes_a_search(dialect: DialectName, stream: bool) -> None:
    request = a_request(web_search=True, stream=stream)

    with DemoGateway([an_item()]) as gateway:
        reply = read(dialect, ask(gateway, dialect, request))
        plain = read(dialect, ask(gateway, dialect, replace(request, web_search=False)))

    assert isinstance(reply, ChatReply)
    assert isinstance(plain, ChatReply)
    assert reply.text == plain.text


@IN_EVERY_DIALECT
def test_another_simulated_model_refuses_a_search(dialect: DialectName) -> None:
    request = a_request(web_search=True, model="demo/average")

    with DemoGateway([an_item()]) as gateway:
        reply = read(dialect, ask(gateway, dialect, request))

    assert isinstance(reply, ProviderError)
    assert "web_search_options" in str(reply)


def test_the_list_of_the_simulated_gateway_names_one_model_that_searches() -> None:
    gateway = Gateway(name="demo", kind="demo")

    with DemoGateway([]) as demo:
        listed = httpx.get(f"{demo.base_url}/models", verify=False).json()

    models = parse_model_list(gateway, listed).models
    assert [model.id for model in models if model.web_search] == ["demo/strong"]
