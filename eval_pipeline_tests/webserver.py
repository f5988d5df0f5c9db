"""A running `dagster dev` and its GraphQL API, asked as the UI asks it."""

import json
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from eval_pipeline.records.item import ExamQuestion
from eval_pipeline_tests.builders import write_questions
from eval_pipeline_tests.conftest import UNWANTED
from eval_pipeline_tests.project import a_project, running

LOCATION = {"repositoryLocationName": "eval_pipeline", "repositoryName": "__repository__"}
STAGES = ["predictions", "judged", "metrics", "comparisons", "leaderboard"]
IMPATIENT = (sys.executable, "-W", "ignore", "-m", "eval_pipeline_tests.impatient")
"""Instead of `dagster`, where backfills are not to be waited for."""
ENDED = {"SUCCESS", "FAILURE", "CANCELED"}
BACKFILL_ENDED = {"COMPLETED_SUCCESS", "COMPLETED_FAILED", "FAILED", "CANCELED", "COMPLETED"}
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
BACKFILL = """
mutation Backfill($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""
BACKFILL_STATUS = """
query Backfill($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    __typename
    ... on PartitionBackfill { status error { message } }
  }
}
"""
RUNS = """
query Runs($filter: RunsFilter) {
  runsOrError(filter: $filter) {
    ... on Runs {
      results {
        runId jobName status startTime endTime
        assetSelection { path }
        tags { key value }
      }
    }
  }
}
"""
SCHEMA = """
query Schema($job: PipelineSelector!) {
  runConfigSchemaOrError(selector: $job) {
    ... on RunConfigSchema {
      rootDefaultYaml
      allConfigTypes { ... on CompositeConfigType { fields { name description } } }
    }
  }
}
"""
PARTITION = """
query Partition($job: PipelineSelector!, $model: String!) {
  pipelineOrError(params: $job) {
    ... on Pipeline {
      partition(partitionName: $model) {
        runConfigOrError { ... on PartitionRunConfig { yaml } }
        tagsOrError { ... on PartitionTags { results { key value } } }
      }
    }
  }
}
"""


class Run(NamedTuple):
    """What the API tells of a run."""

    run_id: str
    job: str
    status: str
    began: float
    ended: float
    assets: frozenset[str]
    tags: dict[str, str]

    @classmethod
    def of(cls, told: dict[str, Any]) -> "Run":
        return cls(
            told["runId"],
            told["jobName"],
            told["status"],
            told["startTime"] or 0.0,
            told["endTime"] or 0.0,
            frozenset(key["path"][0] for key in told["assetSelection"] or ()),
            {tag["key"]: tag["value"] for tag in told["tags"]},
        )


class Webserver:
    """The GraphQL API of a running webserver."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._client = httpx.Client(base_url=address, timeout=60)

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        reply = self._client.post("/graphql", json={"query": query, "variables": variables})
        body: dict[str, Any] = reply.json()
        assert "errors" not in body, body
        data: dict[str, Any] = body["data"]
        return data

    def answers(self) -> bool:
        try:
            return bool(self.ask("{ assetNodes { id } }")["assetNodes"])
        except httpx.TransportError:
            return False

    def schema(self, job: str) -> dict[str, Any]:
        """What the launchpad knows of a job's config."""
        selector = {**LOCATION, "pipelineName": job}
        schema: dict[str, Any] = self.ask(SCHEMA, job=selector)["runConfigSchemaOrError"]
        return schema

    def partition(self, job: str, model: str) -> tuple[str, list[dict[str, str]]]:
        """Config and tags that the launchpad takes over when a partition is chosen."""
        selector = {**LOCATION, "pipelineName": job}
        found = self.ask(PARTITION, job=selector, model=model)["pipelineOrError"]["partition"]
        return found["runConfigOrError"]["yaml"], found["tagsOrError"]["results"]

    def launch(self, job: str, model: str | None = None) -> str:
        """Launches a job as the launchpad does, with what it shows, and waits for the end."""
        if model is None:
            return self._run({"pipelineName": job}, self.schema(job)["rootDefaultYaml"], [])
        return self.ended(self.start(job, model))

    def start(self, job: str, model: str, **asking: object) -> str:
        """The same without waiting, or with only this said of how it is asked; returns its id."""
        shown, tags = self.partition(job, model)
        said = json.dumps({"ops": {"predictions": {"config": asking}}})  # which is YAML too
        return self._start({"pipelineName": job}, said if asking else shown, tags)

    def materialize(self, *assets: str) -> str:
        """The same for the button Materialize."""
        selection = [{"path": [name]} for name in assets]
        return self._run({"pipelineName": "__ASSET_JOB", "assetSelection": selection}, "", [])

    def backfill(self, assets: Sequence[str], models: Sequence[str]) -> list[Run]:
        """The same for that button with many partitions chosen; returns the runs it made."""
        params = {
            "assetSelection": [{"path": [name]} for name in assets],
            "partitionNames": list(models),
        }
        launched = self.ask(BACKFILL, params=params)["launchPartitionBackfill"]
        assert launched["__typename"] == "LaunchBackfillSuccess", launched
        backfill = launched["backfillId"]
        wait_for(lambda: self._backfill(backfill)["status"] in BACKFILL_ENDED)
        assert self._backfill(backfill)["status"] == "COMPLETED_SUCCESS", self._backfill(backfill)
        return self.runs(tags=[{"key": "dagster/backfill", "value": backfill}])

    def runs(self, **only: object) -> list[Run]:
        return [Run.of(told) for told in self.ask(RUNS, filter=only)["runsOrError"]["results"]]

    def ended(self, run_id: str) -> str:
        """How a run has ended, once it has."""
        wait_for(lambda: self._status(run_id) in ENDED)
        return self._status(run_id)

    def _status(self, run_id: str) -> str:
        return str(self.ask(STATUS, id=run_id)["runOrError"]["status"])

    def close(self) -> None:
        self._client.close()

    def _run(self, selector: dict[str, object], config: str, tags: list[dict[str, str]]) -> str:
        return self.ended(self._start(selector, config, tags))

    def _start(self, selector: dict[str, object], config: str, tags: list[dict[str, str]]) -> str:
        params = {
            "selector": {**LOCATION, **selector},
            "mode": "default",
            "executionMetadata": {"tags": tags},
            "runConfigData": config,
        }
        launched = self.ask(LAUNCH, params=params)["launchPipelineExecution"]
        assert launched["__typename"] == "LaunchRunSuccess", launched
        return str(launched["run"]["runId"])

    def _backfill(self, backfill: str) -> dict[str, Any]:
        found: dict[str, Any] = self.ask(BACKFILL_STATUS, id=backfill)["partitionBackfillOrError"]
        return found


def a_quick_project(folder: Path, questions: Sequence[ExamQuestion]) -> Path:
    """A copy of the project's root with a few questions, and a queue looked at every second."""
    project = a_project(folder)
    write_questions(project / "data" / "sample", questions)
    change(
        project / "dagster.yaml",
        "telemetry:",
        "run_queue: {dequeue_interval_seconds: 1}\ntelemetry:",
    )
    return project


def change(file: Path, old: str, new: str) -> None:
    """Edits a file; what is to be replaced must be there."""
    text = file.read_text("utf-8")
    assert old in text, f"{file.name} has no {old}"
    file.write_text(text.replace(old, new), "utf-8")


@contextmanager
def dagster_dev(project: Path, *command: str) -> Iterator[Webserver]:
    """The UI of a project, until the end; nothing that it has started is left behind."""
    port = str(a_free_port())
    with pytest.MonkeyPatch.context() as own:
        # A fixture of a whole module comes before those that see to this for each test.
        for name in {*UNWANTED, "EVALS_SETTINGS", "DAGSTER_HOME", "DAGSTER_MODULE_NAME"}:
            own.delenv(name, raising=False)
        with running(project, *command, "dev", "-p", port, log=project / "dagster.log"):
            webserver = Webserver(f"http://127.0.0.1:{port}")
            wait_for(webserver.answers)
            yield webserver
            webserver.close()
    wait_for(lambda: not processes_in(project))


def wait_for(condition: Callable[[], bool], seconds: float = 150) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.2)


def processes_in(folder: Path) -> list[str]:
    """The processes that work in a folder, as their command lines."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder:
                found.append((process / "cmdline").read_text().replace("\0", " "))
    return found


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
