"""`dagster dev`, a real webserver and daemon: materializing through GraphQL as the UI does."""

import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import httpx
import pytest

from eval_pipeline_tests.project import a_project, running

LOCATION = {"repositoryLocationName": "eval_pipeline", "repositoryName": "__repository__"}
LAUNCH = """
mutation Launch($params: ExecutionParams!) {
  launchPipelineExecution(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
    ... on RunConfigValidationInvalid { errors { message } }
  }
}
"""
STATUS = """
query Status($id: ID!) { runOrError(runId: $id) { __typename ... on Run { status } } }
"""
GRAPH = """
{ assetNodes {
    assetKey { path }
    groupName
    description
    assetChecksOrError { ... on AssetChecks { checks { name description } } }
} }
"""


class Webserver:
    """The GraphQL API of a running webserver."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=address, timeout=60)

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        reply = self._client.post("/graphql", json={"query": query, "variables": variables})
        body: dict[str, Any] = reply.json()
        assert "errors" not in body, body
        data: dict[str, Any] = body["data"]
        return data

    def answers(self) -> bool:
        try:
            return bool(self.ask(GRAPH)["assetNodes"])
        except httpx.TransportError:
            return False

    def materialize(self, *assets: str, partition: str | None = None) -> str:
        """Launches a run as the UI's Materialize button does, and waits for its end."""
        tags = [{"key": "dagster/partition", "value": partition}] if partition else []
        selection = [{"path": [name]} for name in assets]
        params = {
            "selector": {**LOCATION, "pipelineName": "__ASSET_JOB", "assetSelection": selection},
            "mode": "default",
            "executionMetadata": {"tags": tags},
            "runConfigData": {},
        }
        launched = self.ask(LAUNCH, params=params)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        run_id = launched["run"]["runId"]
        wait_for(lambda: self.status(run_id) in {"SUCCESS", "FAILURE", "CANCELED"})
        return self.status(run_id)

    def status(self, run_id: str) -> str:
        return str(self.ask(STATUS, id=run_id)["runOrError"]["status"])

    def close(self) -> None:
        self._client.close()


def wait_for(condition: Callable[[], bool], seconds: float = 150) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.5)


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return a_project(tmp_path)


@pytest.fixture
def webserver(project: Path) -> Iterator[Webserver]:
    port = str(a_free_port())
    with running(project, "dagster", "dev", "-p", port, log=project / "dagster.log"):
        webserver = Webserver(f"http://127.0.0.1:{port}")
        wait_for(webserver.answers)
        yield webserver
        webserver.close()


def test_the_ui_shows_the_assets_and_materializes_them(project: Path, webserver: Webserver) -> None:
    shown = {node["assetKey"]["path"][0]: node for node in webserver.ask(GRAPH)["assetNodes"]}

    ended = [
        webserver.materialize("dataset", "model_catalog"),
        webserver.materialize("predictions", "judged", partition="demo/weak"),
        webserver.materialize("judged", "metrics", "comparisons", "leaderboard"),
    ]

    assert set(shown) == {
        "dataset",
        "model_catalog",
        "predictions",
        "judged",
        "judge_reliability",
        "metrics",
        "comparisons",
        "leaderboard",
    }
    assert {node["groupName"] for node in shown.values()} == {"inputs", "runs", "results"}
    assert all(node["description"] for node in shown.values())
    checks = [check for node in shown.values() for check in node["assetChecksOrError"]["checks"]]
    assert len(checks) == 5 and all(check["description"] for check in checks)
    assert ended == ["SUCCESS", "SUCCESS", "SUCCESS"]
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        assert db.sql("select model, judged from leaderboard").fetchall() == [("demo/weak", 140)]
