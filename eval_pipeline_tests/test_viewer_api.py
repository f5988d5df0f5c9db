"""The API for reading: the same as the commands tell, described as it is."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from openapi_spec_validator import validate
from starlette.testclient import TestClient

from eval_pipeline.interop.remote.messages import encode_segment
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.api import DOCUMENTS
from eval_pipeline.web.app import build_app
from eval_pipeline_tests.project import call
from eval_pipeline_tests.viewed import (
    BROKEN,
    FIRST,
    OLD,
    QUESTIONS,
    STRONG,
    TASK,
    WEAK,
    a_viewed_project,
)

WEAK_RUN = f"runs/{FIRST}/{encode_segment(WEAK)}"


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return a_viewed_project(tmp_path_factory.mktemp("viewed"))


@pytest.fixture(scope="module")
def web(settings: Settings) -> Iterator[TestClient]:
    with TestClient(build_app(settings), base_url="http://127.0.0.1") as client:
        yield client


def told_by(settings: Settings, command: str) -> Any:
    done = call(settings.root, f"{command} --json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def asked(web: TestClient, path: str, **given: str) -> Any:
    reply = web.get(f"/api/v1/{path}", params=given)
    assert reply.status_code == 200, reply.text
    return reply.json()


def test_the_leaderboard_is_that_of_the_command(web: TestClient, settings: Settings) -> None:
    told = told_by(settings, "evals leaderboard")
    found = asked(web, "leaderboard")

    names = ("model", "experiment", "rank_low", "accuracy", "accuracy_low", "judged", "run_id")
    assert sorted(tuple(row[name] for name in names) for row in found["leaderboard"]) == sorted(
        tuple(row[name] for name in names) for row in told["leaderboard"]
    )
    assert found["benchmark_version"]["name"] == "2025.1"
    assert [one["run_id"] for one in found["left_out"]] == [BROKEN]


def test_the_leaderboard_of_a_slice_and_of_an_older_version(web: TestClient) -> None:
    physics = asked(web, "leaderboard", suite="sample", category="Physics")["leaderboard"]
    old = asked(web, "leaderboard", version=OLD.version.benchmark_version)["leaderboard"]

    assert {row["model"]: row["accuracy"] for row in physics if row["experiment"] == "default"} == {
        STRONG: 0.75,
        WEAK: 0.0,
        "acme/best:fast": 0.5,
    }
    assert [(row["model"], row["accuracy"]) for row in old] == [(WEAK, 0.5)]


@pytest.mark.parametrize(
    ("path", "command"),
    [
        (f"runs/{FIRST}/{encode_segment(WEAK)}/failures", f"evals failures {WEAK}@{FIRST}"),
        (f"runs/{FIRST[:4]}/failures", f"evals failures {FIRST}"),
        (
            f"{WEAK_RUN}/items/{encode_segment(TASK.suite)}/{encode_segment(TASK.id)}",
            f"evals debug {WEAK}@{FIRST} {TASK.id}",
        ),
    ],
)
def test_what_failed_is_told_as_the_commands_tell_it(
    web: TestClient, settings: Settings, path: str, command: str
) -> None:
    told, found = told_by(settings, command), asked(web, path)

    assert set(found) == set(told)
    assert _without_times(found) == _without_times(told)


def _without_times(value: Any) -> Any:
    """Times are written with and without their zone."""
    match value:
        case dict():
            return {
                name: _without_times(one) for name, one in value.items() if not name.endswith("_at")
            }
        case list():
            return [_without_times(one) for one in value]
    return value


def test_runs_models_and_versions_are_listed(web: TestClient) -> None:
    runs = asked(web, "runs", model=WEAK)
    run = asked(web, WEAK_RUN)
    models = asked(web, "models")["models"]
    model = asked(web, f"models/{encode_segment(STRONG)}")
    versions = asked(web, "benchmark-versions")["benchmark_versions"]
    launch = asked(web, f"runs/{FIRST}")["runs"]

    assert (len(runs["runs"]), runs["page"], runs["pages"]) == (4, 1, 1)
    assert (run["run"]["accuracy"], run["outcomes"][0]["replies"]) == (pytest.approx(1 / 3), 6)
    assert {one["model"] for one in models} == {STRONG, WEAK, "acme/best:fast"}
    assert len(model["runs"]) == 2
    assert [one["name"] for one in versions] == ["2025.1", "2024.1"]
    assert len(launch) == 3


def test_items_are_listed_page_by_page_by_how_they_went(web: TestClient) -> None:
    found = asked(web, f"runs/{BROKEN}/{encode_segment(WEAK)}/items", show="truncated")

    assert [(one["item_id"], one["went"]) for one in found["items"]] == [("q3", "no verdict")]


def test_two_models_are_compared(web: TestClient) -> None:
    found = asked(web, "compare", a=STRONG, b=WEAK)

    assert (found["items"], found["better"], found["worse"]) == (6, 4, 0)
    assert found["difference"] == pytest.approx(0.5)
    assert {one["item_id"] for one in found["differences"]} == {
        *(one.id for one in QUESTIONS[2:]),
        TASK.id,
    }


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("runs/none", 404),
        ("runs/none/failures", 404),
        (f"runs/{FIRST}/demo=2Fnobody", 404),
        (f"{WEAK_RUN}/items/sample/none", 404),
        (f"{WEAK_RUN}/items?show=x", 404),
        ("models/x=2Fy", 404),
        ("runs?page=x", 404),
        ("leaderboard?version=x", 404),
        ("compare?a=x", 400),
        ("compare?a=x&b=y", 404),
        ("nothing", 404),
    ],
)
def test_what_is_not_there_is_a_sentence_in_json(web: TestClient, path: str, status: int) -> None:
    reply = web.get(f"/api/v1/{path}")

    assert (reply.status_code, list(reply.json())) == (status, ["error"])


def test_the_description_is_valid_and_names_what_is_there(web: TestClient) -> None:
    document = asked(web, "openapi.json")

    validate(document)
    assert {one.address for one in DOCUMENTS} <= set(document["paths"])
    assert set(document["paths"]["/api/v1/runs"]) == {"get", "post"}
    said = document["paths"]["/api/v1/leaderboard"]["get"]["responses"]["200"]
    columns = said["content"]["application/json"]["schema"]["properties"]["leaderboard"]["items"]
    row = asked(web, "leaderboard")["leaderboard"][0]
    assert set(columns["properties"]) == set(row)
    assert columns["properties"]["accuracy"] == {"type": ["number", "null"]}
