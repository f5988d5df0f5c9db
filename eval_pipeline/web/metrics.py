"""Measurements for Prometheus: published results, active runs, Dagster's queue, requests served."""

import logging
import math
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from importlib.metadata import version
from typing import Any

import duckdb
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eval_pipeline.results.queries import query, rows
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.live import Progress

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MOST_NAMES = 200
"""The most models and judges that have numbers of their own: remote runs can invent names."""
BOUNDS_S = (0.005, 0.025, 0.1, 0.3, 1.0, 3.0, 10.0)
OTHER_ROUTE = "other"
"""Requests without a route, or refused before routing: clients can invent addresses."""
PURPOSES, WAYS = ("asking", "judging"), ("input", "output")
OF_A_MODEL = ("model", "simulated")
OF_A_RUN = ("run_id", "model", "experiment", "simulated")
COUNTED = {
    "planned": "Replies that a run at work is for.",
    "answered": "Replies that it has.",
    "failed": "Replies that were asked for in vain.",
    "judged": "Replies that have a score.",
}
QUEUE_READ_EVERY_S = 10.0
QUEUE_TIMEOUT_S = 0.25
"""Dagster's storage is waited for so long; a later reply counts for the next request."""
QUEUE_OLDEST_S = 90.0
ReadQueue = Callable[[Settings], tuple[Mapping[str, int], float] | None]
"""Reads the runs of Dagster by status, and the seconds that the oldest queued one waits."""

log = logging.getLogger(__name__)
disable_created_metrics()  # type: ignore[no-untyped-call]


class _Families(Collector):
    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def exposed(families: Iterable[Metric]) -> str:
    """Return the families in the text format of Prometheus."""
    return generate_latest(_Families(families)).decode()


def of_results(db: duckdb.DuckDBPyConnection) -> Iterator[Metric]:
    """Yield the published results; evals delete can reduce them, so none is a counter."""
    most = {"most": MOST_NAMES}
    used = rows(query(db, "viewer/measured_use", most))
    yield _gauge(
        "runs",
        "Runs, and whether every planned reply has a score.",
        rows(query(db, "viewer/measured_runs")),
        "complete",
        "simulated",
    )
    replies = rows(query(db, "viewer/measured_replies", most))
    about = "Replies that stand, by model and outcome."
    yield _gauge("predictions", about, replies, *OF_A_MODEL, "outcome")
    verdicts = rows(query(db, "viewer/measured_verdicts", most))
    about = "Verdicts that stand, by judge and outcome."
    yield _gauge("judgements", about, verdicts, "judge", "outcome")
    yield _gauge(
        "cost_usd",
        "What replies and verdicts have cost as far as that is known, by the model asked about.",
        [{**row, "value": row[f"{one}_usd"], "purpose": one} for row in used for one in PURPOSES],
        *OF_A_MODEL,
        "purpose",
    )
    unknown = [{**row, "value": row["costs_unknown"]} for row in used]
    yield _gauge("cost_unknown", "Replies whose cost is not known.", unknown, *OF_A_MODEL)
    yield _gauge(
        "tokens",
        "Tokens that the models were sent and have replied, every attempt included.",
        [{**row, "value": row[f"{way}_tokens"], "direction": way} for row in used for way in WAYS],
        *OF_A_MODEL,
        "direction",
    )


def of_now(settings: Settings, at_work: Sequence[Progress]) -> Iterator[Metric]:
    """Yield measurements of this server and of active runs."""
    about = [{"version": version("eval-pipeline"), "value": 1}]
    yield _gauge("info", "This server.", about, "version")
    age = time.time() - settings.database.stat().st_mtime
    yield _gauge("results_age_seconds", "Age of the file of results.", [{"value": age}])
    free = shutil.disk_usage(settings.data).free
    yield _gauge("disk_free_bytes", "Room for more.", [{"value": free}])
    yield _gauge("runs_at_work", "Runs at work.", [{"value": len(at_work)}])
    asking = sum(max(0, one.planned - one.answered) for one in at_work)
    judging = sum(max(0, one.answered - one.judged) for one in at_work)
    pending = {"predictions": asking, "judged": judging}
    queue = [{"stage": stage, "value": count} for stage, count in pending.items()]
    yield _gauge("queue", "What runs at work have yet to do.", queue, "stage")
    for name, about_run in COUNTED.items():
        runs = [{**vars(one), "value": getattr(one, name)} for one in at_work[:MOST_NAMES]]
        yield _gauge(f"run_{name}", about_run, runs, *OF_A_RUN)


def _gauge(
    name: str, about: str, found: Iterable[Mapping[str, Any]], *labels: str
) -> GaugeMetricFamily:
    """Return the `value` of each row with these columns as labels."""
    family = GaugeMetricFamily(f"evals_{name}", about, labels=labels)
    for row in found:
        if row["value"] is not None:
            family.add_metric([_label(row[one]) for one in labels], float(row["value"]))
    return family


def _label(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class DagsterQueue:
    """Reads Dagster's queue at most every ten seconds, in a thread of its own."""

    def __init__(
        self, settings: Settings, read: ReadQueue, timeout_s: float = QUEUE_TIMEOUT_S
    ) -> None:
        self._settings, self._read, self._timeout_s = settings, read, timeout_s
        self._own_thread = ThreadPoolExecutor(1, "queue")
        self._reading: Future[None] | None = None
        self._asked_at = self._seen_at = -math.inf
        self._seen: tuple[Mapping[str, int], float] | None = None

    def families(self) -> Iterator[Metric]:
        """Yield the queue, or only that it could not be read."""
        seen = self._latest()
        up = [{"value": seen is not None}]
        yield _gauge("dagster_up", "Whether Dagster's storage could be read.", up)
        if seen is None:
            return
        runs, oldest_s = seen
        counts = [{"status": status, "value": count} for status, count in runs.items()]
        yield _gauge("dagster_runs", "Dagster's runs that have not ended.", counts, "status")
        about = "Seconds that the oldest of the queued runs waits."
        yield _gauge("dagster_oldest_queued_seconds", about, [{"value": oldest_s}])

    def _latest(self) -> tuple[Mapping[str, int], float] | None:
        reading, now = self._reading, time.monotonic()
        if reading is None or (reading.done() and now > self._asked_at + QUEUE_READ_EVERY_S):
            self._asked_at = now
            reading = self._reading = self._own_thread.submit(self._read_now)
        with suppress(TimeoutError):
            reading.result(self._timeout_s)
        return self._seen if time.monotonic() < self._seen_at + QUEUE_OLDEST_S else None

    def _read_now(self) -> None:
        try:
            self._seen = self._read(self._settings)
            self._seen_at = time.monotonic()
        except Exception as error:  # noqa: BLE001  (a storage of any kind, down in any way)
            # Its message may have an address with a password in it.
            log.warning("Dagster's storage can not be read: %s.", type(error).__name__)


class MetricsMiddleware:
    """Counts every request by route and status, refused ones included."""

    def __init__(self, app: ASGIApp, *, registry: CollectorRegistry) -> None:
        self._app = app
        self._count = Counter(
            "evals_http_requests_total",
            "Requests that this server has served, by route and status.",
            ["route", "status"],
            registry=registry,
        )
        self._duration = Histogram(
            "evals_http_request_duration_seconds",
            "How long they took, by route.",
            ["route"],
            buckets=BOUNDS_S,
            registry=registry,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            route = getattr(scope.get("route"), "path", OTHER_ROUTE)
            self._count.labels(route, str(status)).inc()
            self._duration.labels(route).observe(time.perf_counter() - began)
