"""A deployment that takes in runs, a token for it, and what a runner elsewhere would send."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn
from httpx2 import Response
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.testclient import TestClient

from eval_pipeline.interop.remote.messages import (
    JSON,
    LINES,
    OF_A_RUN,
    RUNS_PATH,
    VERSIONS_PATH,
    encode_segment,
)
from eval_pipeline.journal import Journal
from eval_pipeline.journal.files import as_line
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.records.base import Record
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.benchmark import Benchmark, load_benchmark
from eval_pipeline.web.runs_api import routes
from eval_pipeline_tests.builders import NOON, a_judgement, a_prediction, a_run, settings_in

ITEMS = ("q1", "q2", "q3")


class Sent:
    """A benchmark of three questions, a run over it that cost 1 USD per reply, and its verdicts."""

    def __init__(self, folder: Path) -> None:
        loaded = load_benchmark(settings_in(folder))
        self.benchmark = Benchmark(
            loaded.version.model_copy(update={"loaded_at": NOON}), loaded.items
        )
        self.run = self.a_run()
        usage = Usage(input_tokens=10, output_tokens=5, cost_usd=1.0, cost_estimated=False)
        self.predictions = [a_prediction(item, usage=usage) for item in ITEMS]
        self.judgements = [a_judgement(one, usage=usage) for one in self.predictions]

    def a_run(self, **changes: object) -> Run:
        """The run, or one that differs from it so far."""
        version = self.benchmark.version.benchmark_version
        usual: dict[str, Any] = {
            "plan": tuple(self.benchmark.items),
            "benchmark_version": version,
        }
        return a_run(**{**usual, **changes})

    def lines(self) -> bytes:
        """The benchmark version with its items."""
        items = self.benchmark.items.values()
        return b"".join(map(as_line, (self.benchmark.version, *items)))


class Deployment:
    """An empty one, and whoever talks to it by token."""

    def __init__(self, folder: Path, *, scope: str = "write", **changes: Any) -> None:
        self.settings = settings_in(folder, **changes)
        self.tokens = Tokens(self.settings.tokens)
        self.secret: SecretStr = self.tokens.create("tests", [TokenScope(scope)])
        self.journal = Journal(self.settings.journal)
        self.warehouse = Warehouse(self.settings.database, self.journal)
        self.app = Starlette(routes=list(routes(self.settings, self.tokens, self.warehouse)))
        self.client = TestClient(self.app, raise_server_exceptions=False)

    def post(
        self, path: str, content: bytes = b"", media_type: str = JSON, **headers: str
    ) -> Response:
        """What is answered to this body."""
        given = {
            "Authorization": f"Bearer {self.secret.get_secret_value()}",
            "Content-Type": media_type,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return self.client.post(path, content=content, headers=given)

    def keep(self, lines: bytes) -> Response:
        """Sends a benchmark version."""
        return self.post(VERSIONS_PATH, lines, LINES)

    def open(self, run: Run, **more: Record) -> Response:
        """Sends a run."""
        return self.post(RUNS_PATH, document(run=run, **more))

    def predict(self, *predictions: Prediction, **changes: object) -> Response:
        """Sends replies of the usual run, the last one changed by these fields."""
        return self.post(f"{of_run()}/predictions", batch("predictions", predictions, changes))

    def judge(self, *judgements: Judgement, **changes: object) -> Response:
        """The same with verdicts."""
        return self.post(f"{of_run()}/judgements", batch("judgements", judgements, changes))

    def begin(self, sent: Sent) -> None:
        """With the benchmark and the run open."""
        assert self.keep(sent.lines()).status_code == 201
        assert self.open(sent.run).status_code == 201

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """What the DuckDB file says when all is published."""
        self.warehouse.publish()
        with self.warehouse.reading() as db:
            return db.sql(sql).fetchall()


def of_run(run_id: str = "run-1", model: str = "demo/strong") -> str:
    """The path of a run."""
    return OF_A_RUN.format(run_id=encode_segment(run_id), model=encode_segment(model))


def document(**records: Record) -> bytes:
    """These as one JSON object."""
    return json.dumps(
        {name: json.loads(one.model_dump_json()) for name, one in records.items()}
    ).encode()


def batch(
    name: str, records: tuple[Prediction, ...] | tuple[Judgement, ...], changes: dict[str, object]
) -> bytes:
    """The records under that name, with changes in the last of them that no record would allow."""
    values = [json.loads(one.model_dump_json()) for one in records]
    values[-1].update(changes)
    return json.dumps({name: values}).encode()


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The address of a real server on this machine."""
    config = uvicorn.Config(app, port=0, ws="none", lifespan="off", log_level="error")
    server = uvicorn.Server(config)
    thread = Thread(target=server.run)
    thread.start()
    try:
        while not server.started:
            thread.join(0.01)
        port = server.servers[0].sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()
