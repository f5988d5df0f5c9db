"""Twelve simulated models behind one gateway, which knows how many of them are asked at a time."""

import asyncio
import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from eval_pipeline.gateways.demo.faults import FaultKind, Faults
from eval_pipeline.gateways.demo.replies import JUDGE, STRONG
from eval_pipeline.gateways.demo.requests import Request
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.records.item import Item

CROWD = [replace(STRONG, id=f"demo/m{n:02}", skill=0.1 + 0.07 * n) for n in range(1, 13)]
MODELS = [mind.id for mind in CROWD]


class Crowd(DemoGateway):
    """A gateway that offers the twelve, and a judge.

    None is answered before `at_least` of them have been asked at once: how far apart a busy machine
    starts their runs does not decide whether they meet.
    """

    def __init__(self, items: Sequence[Item], *, latency_s: float = 0.0, at_least: int = 0) -> None:
        offered = {mind.id: mind for mind in (*CROWD, JUDGE)}
        super().__init__(items, models=offered, faults=Faults(latency_s=latency_s))
        self.most_models = self.most_requests = 0
        self._at_least, self._enough = at_least, asyncio.Event()
        self.judged_at: list[float] = []

    @contextmanager
    def _counted(self, request: Request) -> Iterator[None]:
        if request.model == JUDGE.id:
            self.judged_at.append(time.monotonic())
        with super()._counted(request):
            open_now = [self.at_once[model] for model in MODELS if self.at_once[model]]
            self.most_models = max(self.most_models, len(open_now))
            self.most_requests = max(self.most_requests, sum(open_now))
            if self.most_models >= self._at_least:
                self._enough.set()
            yield

    async def _fault(self, request: Request) -> FaultKind | None:
        if request.model != JUDGE.id:
            await self._enough.wait()
        return await super()._fault(request)

    def busiest(self, seconds: float) -> int:
        """How many requests the judge got at most within so many seconds."""
        ends = [bisect_left(self.judged_at, moment + seconds) for moment in self.judged_at]
        return max((end - start for start, end in enumerate(ends)), default=0)
