"""Twelve simulated models behind one gateway, which knows how many of them are asked at a time."""

import time
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.providers.demo.minds import JUDGE, STRONG
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline.providers.demo.wire import ChatBody
from eval_pipeline.records import Item

CROWD = [replace(STRONG, id=f"demo/m{n:02}", skill=0.1 + 0.07 * n) for n in range(1, 13)]
MODELS = [mind.id for mind in CROWD]


class Crowd(DemoGateway):
    """A gateway that offers the twelve, and a judge."""

    def __init__(self, items: Sequence[Item], *, latency_s: float = 0.0) -> None:
        offered = {mind.id: mind for mind in (*CROWD, JUDGE)}
        super().__init__(items, models=offered, faults=Faults(latency_s=latency_s))
        self.most_models = self.most_requests = 0
        self.judged_at: list[float] = []

    @contextmanager
    def _counted(self, body: ChatBody) -> Iterator[None]:
        if body.model == JUDGE.id:
            self.judged_at.append(time.monotonic())
        with super()._counted(body):
            open_now = [self.at_once[model] for model in MODELS if self.at_once[model]]
            self.most_models = max(self.most_models, len(open_now))
            self.most_requests = max(self.most_requests, sum(open_now))
            yield

    def busiest(self, seconds: float) -> int:
        """How many requests the judge got at most within so many seconds."""
        ends = [bisect_left(self.judged_at, moment + seconds) for moment in self.judged_at]
        return max((end - start for start, end in enumerate(ends)), default=0)
