"""What this server has served since it began: how much, with which end, and how fast."""

import math
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from threading import Lock
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eval_pipeline.viewer.exposition import Family, Sample, number

BOUNDS_S = (0.005, 0.025, 0.1, 0.3, 1.0, 3.0, 10.0, math.inf)
ELSEWHERE = "other"
"""Whatever has no route, or was refused before one was looked for: anybody can invent addresses."""


@dataclass
class _Times:
    """How many requests took how long."""

    counts: list[int] = field(default_factory=lambda: [0] * len(BOUNDS_S))
    total_s: float = 0.0

    def note(self, seconds: float) -> None:
        self.counts[bisect_left(BOUNDS_S, seconds)] += 1
        self.total_s += seconds

    def samples(self, route: str) -> list[Sample]:
        counts = list(accumulate(self.counts))
        at = {"route": route}
        return [
            *(
                Sample(count, {**at, "le": number(bound)}, "_bucket")
                for bound, count in zip(BOUNDS_S, counts, strict=True)
            ),
            Sample(self.total_s, at, "_sum"),
            Sample(counts[-1], at, "_count"),
        ]


class Requests:
    """Requests by route, which are as many as the server has, and by status."""

    def __init__(self) -> None:
        self._counts: Counter[tuple[str, int]] = Counter()
        self._times: dict[str, _Times] = {}
        self._lock = Lock()

    def note(self, route: str, status: int, seconds: float) -> None:
        """One was served."""
        with self._lock:
            self._counts[route, status] += 1
            self._times.setdefault(route, _Times()).note(seconds)

    def families(self) -> list[Family]:
        """All of it so far."""
        with self._lock:
            counts = [
                Sample(count, {"route": route, "status": str(status)})
                for (route, status), count in sorted(self._counts.items())
            ]
            times = [
                sample
                for route, one in sorted(self._times.items())
                for sample in one.samples(route)
            ]
        about = "Requests that this server has served, by route and status."
        took = "How long they took, by route."
        return [
            Family("evals_http_requests_total", "counter", about, counts),
            Family("evals_http_request_duration_seconds", "histogram", took, times),
        ]


class Counted:
    """Stands before all, so that what is refused is counted too."""

    def __init__(self, app: ASGIApp, *, requests: Requests) -> None:
        self._app = app
        self._requests = requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 500

        async def send_noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, send_noted)
        finally:
            route = getattr(scope.get("route"), "path", ELSEWHERE)
            self._requests.note(route, status, perf_counter() - began)
