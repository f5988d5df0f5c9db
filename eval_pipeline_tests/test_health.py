"""Whether the server is well: told to anybody, soon, and without a word about where things are."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import duckdb
import pytest
from starlette.testclient import TestClient

from eval_pipeline.settings.settings import Settings
from eval_pipeline.web import health
from eval_pipeline.web.app import build_app
from eval_pipeline.web.health import Health, Report
from eval_pipeline_tests.builders import a_warehouse, settings_in

Break = Callable[[Settings, pytest.MonkeyPatch], object]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    a_warehouse(folder)
    return folder


@pytest.fixture
def settings(results: Path, tmp_path: Path) -> Settings:
    """Nobody may read here without a token."""
    settings = settings_in(tmp_path, web={"public": False})
    shutil.copytree(results, settings.data)
    return settings


def asked(settings: Settings) -> tuple[int, dict[str, Any]]:
    reply = TestClient(build_app(settings), base_url="http://127.0.0.1").get("/health")
    assert str(settings.root) not in reply.text and reply.headers["cache-control"] == "no-store"
    return reply.status_code, reply.json()


def test_a_server_that_is_well_says_so_to_anybody(settings: Settings) -> None:
    status, told = asked(settings)

    assert (status, told["status"]) == (200, "ok")
    assert told["checks"] == {"results": "ok", "journal": "ok", "disk": "ok"}


def from_the_future(settings: Settings, _: pytest.MonkeyPatch) -> None:
    with duckdb.connect(str(settings.database)) as db:
        db.execute("update schema_version set version = version + 1")


class _Usage(NamedTuple):
    free: int


@pytest.mark.parametrize(
    ("wrong", "name", "words"),
    [
        (lambda s, _: s.database.unlink(), "results", "There are none"),
        (lambda s, _: s.database.write_text("nonsense"), "results", "can not be read"),
        (from_the_future, "results", "newer version"),
        (lambda s, _: shutil.rmtree(s.journal), "journal", "It is gone"),
        (lambda s, _: (s.journal / "format").write_text("99"), "journal", "can not be read"),
        (lambda _, m: m.setattr("os.access", lambda *_: False), "journal", "cannot be written"),
        (
            lambda _, m: m.setattr("shutil.disk_usage", lambda _: _Usage(2**20)),
            "disk",
            r"Too little is free (1 MB)",
        ),
    ],
)
def test_what_is_wrong_is_named(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, wrong: Break, name: str, words: str
) -> None:
    wrong(settings, monkeypatch)

    status, told = asked(settings)

    assert (status, told["status"]) == (503, "wrong")
    assert [one for one, found in told["checks"].items() if found != "ok"] == [name]
    assert words in told["checks"][name]


def test_where_nobody_is_to_write_it_does_not_matter_that_nobody_can(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.access", lambda *_: False)

    production = {"deployment": "prod", "deployments": {"prod": {"production": True}}}
    status, _ = asked(settings.overridden(production))

    assert status == 200


def test_before_anything_was_evaluated_there_need_be_no_journal(settings: Settings) -> None:
    with duckdb.connect(str(settings.database)) as db:
        db.execute("delete from runs")
    shutil.rmtree(settings.journal)

    status, _ = asked(settings)

    assert status == 200


def test_a_file_that_somebody_writes_to_is_well(settings: Settings) -> None:
    with duckdb.connect(str(settings.database)):
        report = health.look(settings)

    assert report.is_well


def test_a_disk_that_hangs_is_waited_for_by_one_and_not_for_long(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers, looks = Event(), []

    def hang(_: Settings) -> Report:
        looks.append(1)
        answers.wait(30)
        return Report({"disk": "ok"})

    monkeypatch.setattr(health, "look", hang)
    asked_of = Health(settings, longest_s=0.05)

    async def ask() -> list[bool]:
        hanging = [(await asked_of.report()).is_well for _ in range(3)]
        answers.set()
        asked_of._longest_s = 30
        return [*hanging, (await asked_of.report()).is_well]

    assert asyncio.run(ask()) == [False, False, False, True]
    assert len(looks) == 1
