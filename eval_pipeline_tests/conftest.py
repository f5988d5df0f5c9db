"""What every test gets: an environment without keys; and a stand for those that ask models."""

import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import Journal
from eval_pipeline.settings.gateway import KEY_VARIABLES
from eval_pipeline.settings.loading import VARIABLES
from eval_pipeline.settings.settings import PRODUCTION, TOKEN, WEBHOOK
from eval_pipeline.suites.benchmark import current
from eval_pipeline_tests.builders import settings_in
from eval_pipeline_tests.stand import Stand

UNWANTED = {*VARIABLES, *filter(None, KEY_VARIABLES.values()), "HF_TOKEN", WEBHOOK, TOKEN}
UNWANTED |= {PRODUCTION, "GITHUB_ACTIONS", "GITHUB_REF"}


LONG = [
    "bench",  # the longest of the soak
    "crash",
    "webserver",
    "storm",
    "commands",
    "verdict_attacks",
    "deleting",
    "interrupting",
    "data_commands",
    "menu",
    "pipeline",
    "viewer_browser",
    "convex_projects",
    "progress_terminal",
    "launching",
    "code_judge",
    "rejudge",
    "looking",
    "standing",
    "planning",
    "judge_code",
    "carrying",
    "convex_verdict",
    "versions",
    "leaderboard",
    "toolchain_convex",
    "convex_scores",
    "analyze_command",
    "jobs",
    "side_by_side",
    "warehouse",
    "reliability",
    "toolchain_python",
    "viewer",
    "automation",
    "building",
    "metrics",
    "coding_commands",
]
"""Files that take longest: begun first, nobody waits for them at the end."""


def pytest_configure() -> None:
    """Started in the background, or with nohup, processes are deaf, and so is what they start."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long files first, and the others as they come."""
    order = {f"test_{name}": place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONG)))


def pytest_collection_finish() -> None:
    """What is loaded by now stays to the end: no collection of garbage need look at it again."""
    if "dagster" in sys.modules:
        from eval_pipeline_tests.kept_engines import keep_engines  # noqa: PLC0415

        keep_engines()
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A developer's keys and filters must not decide what a test does."""
    for name in {*UNWANTED, "EVALS_SETTINGS", "DAGSTER_HOME", "DAGSTER_MODULE_NAME"}:
        monkeypatch.delenv(name, raising=False)
    assert not UNWANTED & set(os.environ)
    yield


@pytest.fixture(autouse=True)
def _same_log() -> Iterator[None]:
    """Commands show the log on their own terminal, which is gone when their test has ended."""
    log = logging.getLogger("eval_pipeline")
    handlers, level = log.handlers[:], log.level
    yield
    log.handlers[:] = handlers
    log.setLevel(level)


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test that would reach out fails, wherever it runs."""
    connect = socket.socket.connect

    def refuse(self: socket.socket, address: Any) -> None:
        host = address[0] if isinstance(address, tuple) else "localhost"
        assert host in {"127.0.0.1", "::1", "localhost"}, f"a test wants to reach {host}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[DemoGateway]:
    settings = settings_in(tmp_path)
    items = current(Journal(settings.journal), settings).items
    with DemoGateway(tuple(items.values())) as server:
        yield server


@pytest.fixture
def stand(tmp_path: Path, gateway: DemoGateway) -> Stand:
    return Stand(tmp_path, gateway)
