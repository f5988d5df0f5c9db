"""A refresh: what it tells of models and prices, whom it tries first, and what it keeps."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.catalog import Look, known_models, listed_models, look, refresh
from eval_pipeline.gateways.catalog import (
    MOST_TOLD,
    Catalog,
    CatalogChanges,
    PreviousCatalog,
    compare,
)
from eval_pipeline.journal import SIGHTINGS, Journal
from eval_pipeline.records.model import Model, Prices, Sighting
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import NOON, a_model, settings_in
from eval_pipeline_tests.test_pipeline import Graph
from eval_pipeline_tests.test_preflight import Shop


@pytest.fixture
def shop() -> Iterator[Shop]:
    with Shop() as shop:
        shop.prices = {"x/a": (1e-6, 2e-6), "x/b": (3e-6, 4e-6)}
        yield shop


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield instance


def settings_at(folder: Path, *gateways: dict[str, object], **changes: Any) -> Settings:
    given = {"selection": {"exclude_models": ()}, **changes}
    return settings_in(folder, gateways=list(gateways), **given)


def refreshed(settings: Settings) -> Look:
    return run_async(refresh(settings, Journal(settings.journal)))


def sightings(settings: Settings) -> list[Sighting]:
    return list(Journal(settings.journal).read(SIGHTINGS))


def offered(settings: Settings) -> dict[str, bool]:
    """Whether each known model is listed: by the journal, and by the table."""
    journal = Journal(settings.journal)
    listed = {model.id for model in listed_models(journal)}
    warehouse = Warehouse(settings.database, journal)
    warehouse.publish()
    with warehouse.reading() as db:
        table = db.sql("select model, listed and selected from model_catalog").fetchall()
    assert {model for model, is_listed in table if is_listed} == listed
    return {model: model in listed for model in known_models(journal)}


def seen(*models: Model, hours: int = 0) -> list[Sighting]:
    moment = NOON + timedelta(hours=hours)
    return [Sighting(model=model, selected=True, seen_at=moment) for model in models]


def news(before: Sequence[Sighting], *models: Model, failed: str | None = None) -> CatalogChanges:
    failures = {} if failed is None else {failed: "It is down."}
    return compare(PreviousCatalog.of(before), Catalog(models, (), failures))


def test_a_refresh_tells_what_appeared_vanished_and_changed_its_price(
    tmp_path: Path, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    settings = settings_at(tmp_path, shop.gateway())
    first = refreshed(settings)
    shop.prices = {"x/b": (3e-6, 5e-6), "x/c": (0, 0)}
    caplog.set_level("INFO")

    second = refreshed(settings)

    assert first.news == CatalogChanges(("x/a", "x/b"), first=True)
    assert first.news.sentences() == ["Appeared: 2 models, seen for the first time."]
    price = "x/b: output 4.00 to 5.00 USD per million tokens"
    assert second.news == CatalogChanges(("x/c",), ("x/a",), (price,))
    assert [line for line in caplog.messages if ": x/" in line] == [
        "Appeared: x/c.",
        "Vanished: x/a.",
        f"Changed their price: {price}.",
    ]
    assert not any(refreshed(settings).news)


def test_a_gateway_that_does_not_answer_has_lost_nothing(tmp_path: Path, shop: Shop) -> None:
    with Shop() as other:
        other.prices = {"y/a": (0, 0)}
        settings = settings_at(tmp_path, shop.gateway(), other.gateway("other"))
        refreshed(settings)
        shop.closed = True
        meanwhile = refreshed(settings)
        shop.closed = False
        del shop.prices["x/a"]

        again = refreshed(settings)

    assert not any(meanwhile.news)
    assert again.news == CatalogChanges(vanished=("x/a",))


def test_models_of_a_gateway_that_is_no_longer_in_the_settings_are_not_listed_until_it_is_back(
    tmp_path: Path, shop: Shop
) -> None:
    with Shop() as other:
        other.prices = {"y/a": (0, 0)}
        both = settings_at(tmp_path, shop.gateway(), other.gateway("other"))
        without = both.overridden({"gateways": [shop.gateway()]})
        refreshed(both)
        before = offered(both)

        told = [refreshed(without).news.vanished for _ in range(2)]
        meanwhile = offered(both)
        refreshed(both)

    assert told == [("y/a",), ()]
    assert before == {"x/a": True, "x/b": True, "y/a": True}
    assert meanwhile == {**before, "y/a": False}
    assert offered(both) == before


def test_a_model_that_comes_back_has_appeared() -> None:
    a, b = a_model("x/a"), a_model("x/b")

    told = news([*seen(a, b), *seen(b, hours=1)], a, b)

    assert told == CatalogChanges(appeared=("x/a",))


def test_a_model_that_another_gateway_takes_over_is_still_there() -> None:
    before = seen(a_model("x/a"), a_model("x/b"))

    told = news(before, a_model("x/a", gateway="other"), a_model("x/b"))

    assert not any(told)


@pytest.mark.parametrize("still_there", [True, False])
def test_what_vanished_with_its_gateway_is_told_once(still_there: bool) -> None:
    lost, kept = a_model("y/a", gateway="other"), a_model("x/a")
    before = seen(lost, kept)

    failed = "other" if still_there else None
    told = news(before, kept, failed=failed)
    afterwards = news([*before, *seen(kept, hours=1)], kept, failed=failed)

    assert told.vanished == (() if still_there else ("y/a",))
    assert not any(afterwards)


def test_nobody_is_told_hundreds_of_names() -> None:
    models = [a_model(f"x/m{number:03}") for number in range(MOST_TOLD + 150)]

    told = news(seen(a_model("x/a")), a_model("x/a"), *models)

    assert len(told.appeared) == MOST_TOLD + 150
    (sentence,) = told.sentences()
    assert sentence.endswith(", x/m048, x/m049, and 150 more.")


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            {"prompt": 1.25e-6, "completion": 1e-5},
            {"prompt": 1e-6, "completion": 8e-6},
            "input 1.25 to 1.00, output 10.00 to 8.00 USD per million tokens",
        ),
        ({}, {"prompt": 3.75e-8}, "input unknown to 0.0375 USD per million tokens"),
        ({"cached": 0}, {}, "cached input 0.00 to unknown USD per million tokens"),
        ({"reasoning": 1e-6}, {"reasoning": 2e-6}, "reasoning 1.00 to 2.00 USD per million tokens"),
        ({"request": 0.01}, {"request": 0.005}, "0.01 to 0.005 USD per request"),
        (
            {"prompt": 1e-6},
            {"prompt": 2e-6, "request": 0.5},
            "input 1.00 to 2.00 USD per million tokens, unknown to 0.50 USD per request",
        ),
        ({"prompt": 1e-6}, {"prompt": 1e-6 * (1 + 1e-15)}, None),
    ],
)
def test_a_change_of_price_in_words(
    before: dict[str, float], after: dict[str, float], words: str | None
) -> None:
    old, new = (a_model("x/a", prices=Prices(**prices)) for prices in (before, after))

    assert news(seen(old), new).repriced == (() if words is None else (f"x/a: {words}",))


def test_a_look_asks_no_model_and_leaves_no_trace(tmp_path: Path, shop: Shop) -> None:
    settings = settings_at(tmp_path, shop.gateway())

    found = run_async(look(settings, Journal(settings.journal)))

    assert found.news.appeared == ("x/a", "x/b")
    assert found.summary == "2 models at 1 gateway"
    assert shop.asked == [] and not settings.data.exists()


def test_only_newly_selected_models_are_tried(tmp_path: Path, shop: Shop) -> None:
    settings = settings_at(tmp_path, shop.gateway(), selection={"models": ["x/a", "x/c", "x/d"]})
    shop.prices |= {"x/c": (0, 0), "x/d": (0, 0)}
    shop.status = {"x/c": 404}
    refreshed(settings)
    tried = shop.names_asked()
    # One that is a partition is not thrown out, one that was kept out gets another chance.
    shop.status = {"x/a": 404, "x/c": 500}
    again = refreshed(settings)
    tried_again = shop.names_asked()
    shop.status = {}
    widened = refreshed(settings_at(tmp_path, shop.gateway()))

    assert tried == ["x/a", "x/c", "x/d"]
    assert tried_again == ["x/c"]
    assert [model.id for model in again.selected.models] == ["x/a", "x/d"]
    assert shop.names_asked() == ["x/b", "x/c"]
    assert [model.id for model in widened.selected.models] == ["x/a", "x/b", "x/c", "x/d"]
    assert [(one.model.id, one.selected, one.kept_out) for one in sightings(settings)[:4]] == [
        ("x/a", True, None),
        ("x/b", False, None),
        ("x/c", False, "unknown_model: HTTP 404: x/c says 404"),
        ("x/d", True, None),
    ]


def test_a_model_that_was_away_is_tried_again(tmp_path: Path, shop: Shop) -> None:
    settings = settings_at(tmp_path, shop.gateway())
    refreshed(settings)
    price = shop.prices.pop("x/a")
    refreshed(settings)
    shop.names_asked()
    shop.prices["x/a"] = price

    refreshed(settings)

    assert shop.names_asked() == ["x/a"]


def test_without_preflight_nobody_is_asked(tmp_path: Path, shop: Shop) -> None:
    shop.status = {"x/a": 404}

    found = refreshed(settings_at(tmp_path, shop.gateway(), automation={"preflight": False}))

    assert shop.asked == [] and len(found.selected.models) == 2


def test_if_nobody_answers_for_anyone_nothing_is_changed(tmp_path: Path, shop: Shop) -> None:
    settings = settings_at(tmp_path, shop.gateway())
    shop.status = {"x/a": 404, "x/b": 500}

    with pytest.raises(RunError, match=r"so nothing is changed\..* \(x/a\): unknown_model: .*x/b"):
        refreshed(settings)

    assert sightings(settings) == []


def test_what_one_reason_keeps_out_is_told_in_one_sentence(tmp_path: Path, shop: Shop) -> None:
    described = [{"id": f"y/m{number}"} for number in range(5)]
    address = "http://127.0.0.1:9/v1"
    gateway = {"name": "dead", "kind": "openai", "base_url": address}
    dead: dict[str, object] = {**gateway, "models": described}

    found = refreshed(settings_at(tmp_path, shop.gateway(), dead))

    assert found.tried.kept_out.keys() == {one["id"] for one in described}
    (told,) = [one for one in found.warnings if "kept out" in one]
    named = "Gateway 'dead': 5 models are kept out (y/m0, y/m1, y/m2 and 2 more): "
    assert told.startswith(f"{named}connection_error: ")


def test_the_catalog_shows_numbers_names_and_reasons(
    tmp_path: Path, shop: Shop, instance: dg.DagsterInstance
) -> None:
    graph = Graph(settings_at(tmp_path, shop.gateway()), instance)
    graph.run("model_catalog")
    shop.prices = {"x/b": (1e-6, 4e-6), "x/c": (0, 0), "x/d": (0, 0)}
    shop.status = {"x/c": 404}

    result = graph.run("model_catalog")

    (materialized,) = result.asset_materializations_for_node("model_catalog")
    told = {name: value.value for name, value in materialized.metadata.items()}
    counts = ("models", "selected_models", "appeared", "vanished", "repriced", "kept_out")
    assert [told[name] for name in counts] == [3, 2, 2, 1, 1, 1]
    assert told["new_models"] == "- x/c\n- x/d"
    assert told["lost_models"] == "- x/a"
    assert told["new_prices"] == "- x/b: input 3.00 to 1.00 USD per million tokens"
    assert told["kept_out_because"] == r"- x/c: unknown\_model: HTTP 404: x/c says 404"
    assert r"1 model is kept out (x/c): unknown\_model: " in str(told["warnings"])
    assert graph.partitions() == {"x/b", "x/d"}
    assert graph.rows("select model, selected, kept_out_because from model_catalog order by 1") == [
        ("x/a", True, None),
        ("x/b", True, None),
        ("x/c", False, "unknown_model: HTTP 404: x/c says 404"),
        ("x/d", True, None),
    ]
