"""A cluster on paper: models that are evaluated on so many workers, event by event.

Work flows at rates (requests at the pace of the gateway, or of the processors if those are slower),
and whenever something ends, all rates are reckoned anew. So a run is a handful of events however
many items it has, and 10^4 runs over 10^4 items take seconds to simulate.
"""

import math
import random
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from heapq import nsmallest

NEVER = float("inf")
ENOUGH = 1e-9
MUCH = 0.75


@dataclass(frozen=True)
class Costs:
    """What was measured, in seconds of a processor but for the memory."""

    start_s: float = 3.0
    """A run from its process's start to the first request, and from the last result to its end."""
    item_s: float = 0.0006
    """To ask one item, or to judge it, and to keep what came of it."""
    publish_s: float = 1.5
    """To build a DuckDB file of next to nothing."""
    publish_result_s: float = 80e-6
    """And so much more for each reply with its verdict."""
    pair_s: float = 0.0005
    """To compare two models, each time the file is built."""
    memory_mb: float = 180.0
    memory_result_mb: float = 0.0006

    def build_s(self, results: float, models: int) -> float:
        """To build the file of so many results."""
        pairs = models * (models - 1) / 2
        return self.publish_s + self.publish_result_s * results + self.pair_s * pairs

    def build_mb(self, results: float) -> float:
        return self.memory_mb + self.memory_result_mb * results


@dataclass(frozen=True)
class Plan:
    """What is to be done, and by whom."""

    models: int
    items: int
    workers: int = 1
    """Each works on one run at a time."""
    models_per_run: int = 1
    cores: float = 2.0
    """Of all machines together."""
    models_at_once: int = 10
    requests_at_once: int = 50
    """Of each model."""
    latency_s: float = 5.0
    spread: float = 0.3
    """How much slower or faster than that models are: the deviation of the logarithm."""
    coalesce: bool = True
    """Whether who waits to publish does nothing if its results were published meanwhile."""
    seed: int = 0

    @property
    def runs(self) -> int:
        return math.ceil(self.models / self.models_per_run)

    @property
    def places(self) -> int:
        """At the gateway, that a run takes."""
        return min(self.models_per_run, self.models_at_once)

    @property
    def items_per_run(self) -> int:
        return self.items * self.models_per_run


@dataclass(frozen=True)
class Outcome:
    """How it went."""

    seconds: float
    builds: int
    longest_wait_s: float
    """For others to publish."""
    shares: dict[str, float]
    """Of the time: how much of the gateway, the processors and the publisher was in use."""
    memory_mb: float

    @property
    def limit(self) -> str:
        """What is in use the most; if that is little, there are just too few workers.

        Who publishes uses a processor, so of these two it is the publisher.
        """
        name = max(self.shares, key=lambda one: (round(self.shares[one], 1), one == "publishing"))
        return name if self.shares[name] > MUCH else f"{name}, hardly"


class _Stage(Enum):
    STARTING = "starting"
    WAITING = "waiting for a place at the gateway"
    ASKING = "asking"
    JUDGING = "judging"
    QUEUED = "waiting to publish"
    BUILDING = "publishing"


@dataclass
class _Run:
    number: int
    latency_s: float
    stage: _Stage = _Stage.STARTING
    left: float = 0.0
    """Of its stage: seconds of a processor, or items."""
    rate: float = 0.0
    is_asked: bool = False
    """And published; what is left is to judge."""
    since: float = 0.0


_WITH_ITEMS = (_Stage.ASKING, _Stage.JUDGING)


@dataclass
class _Cluster:
    plan: Plan
    costs: Costs
    now: float = 0.0
    results: float = 0.0
    builds: int = 0
    longest_wait_s: float = 0.0
    used: dict[str, float] = field(
        default_factory=lambda: {"gateway": 0.0, "processors": 0.0, "publishing": 0.0}
    )
    working: list[_Run] = field(default_factory=list)
    at_gateway: deque[_Run] = field(default_factory=deque)
    to_publish: deque[_Run] = field(default_factory=deque)
    building: _Run | None = None
    covered: set[int] = field(default_factory=set)
    """Who waited when the build began, and so has nothing to do when it ends."""

    def run(self) -> Outcome:
        chance = random.Random(self.plan.seed)
        latencies = [
            self.plan.latency_s * chance.lognormvariate(0, self.plan.spread)
            for _ in range(self.plan.runs)
        ]
        left = deque(_Run(number, latency) for number, latency in enumerate(latencies))
        ended = 0
        while ended < self.plan.runs:
            while left and len(self.working) < self.plan.workers:
                self._begin(left.popleft())
            self._set_rates()
            for run in self._forward():
                ended += self._next(run)
        shares = {name: used / self.now for name, used in self.used.items()}
        memory_mb = self.costs.build_mb(self.results)
        return Outcome(self.now, self.builds, self.longest_wait_s, shares, memory_mb)

    def _begin(self, run: _Run) -> None:
        run.left = self.costs.start_s
        self.working.append(run)

    def _set_rates(self) -> None:
        """How fast each goes: what all want of the processors, or an equal part of them."""
        wants = {id(run): self._wanted(run) for run in self.working}
        cores, parts = self.plan.cores, len(wants)
        given: dict[int, float] = {}
        for key, want in nsmallest(parts, wants.items(), key=lambda one: one[1]):
            given[key] = min(want, cores / parts)
            cores, parts = cores - given[key], parts - 1
        for run in self.working:
            run.rate = given[id(run)] / self._per_unit(run)

    def _wanted(self, run: _Run) -> float:
        """Processors; a process has the use of one."""
        match run.stage:
            case _Stage.STARTING | _Stage.BUILDING:
                return 1.0
            case _Stage.ASKING | _Stage.JUDGING:
                per_s = self.plan.places * self.plan.requests_at_once / run.latency_s
                return min(1.0, per_s * self.costs.item_s)
        return 0.0

    def _per_unit(self, run: _Run) -> float:
        return self.costs.item_s if run.stage in _WITH_ITEMS else 1.0

    def _forward(self) -> list[_Run]:
        """To the next moment at which something ends; returns what does."""
        step = min((run.left / run.rate for run in self.working if run.rate), default=0.0)
        asking = [run for run in self.working if run.stage is _Stage.ASKING]
        cores = sum(run.rate * self._per_unit(run) for run in self.working)
        places = len(asking) * self.plan.places
        self.used["gateway"] += step * places / self.plan.models_at_once
        self.used["processors"] += step * cores / self.plan.cores
        self.used["publishing"] += step * (self.building is not None)
        self.now += step
        for run in self.working:
            run.left -= step * run.rate
        # A reply with its verdict is one.
        with_items = (run for run in self.working if run.stage in _WITH_ITEMS)
        self.results += sum(step * run.rate for run in with_items) / 2
        return [run for run in self.working if run.rate and run.left <= ENOUGH * (1 + run.rate)]

    def _next(self, run: _Run) -> int:
        """Takes a run to its next stage; says how many runs have ended by that."""
        match run.stage:
            case _Stage.STARTING:
                self._to_gateway(run)
            case _Stage.ASKING | _Stage.JUDGING:
                self._wait(run, _Stage.QUEUED)
                self._free_place()
                self._to_publish(run)
            case _Stage.BUILDING:
                self.building = None
                ended = sum(map(self._published, [run, *self._satisfied()]))
                self._build_next()
                return ended
        return 0

    def _to_gateway(self, run: _Run) -> None:
        self._wait(run, _Stage.WAITING)
        self.at_gateway.append(run)
        self._free_place()

    def _free_place(self) -> None:
        asking = sum(run.stage is _Stage.ASKING for run in self.working)
        while self.at_gateway and (asking + 1) * self.plan.places <= self.plan.models_at_once:
            run = self.at_gateway.popleft()
            run.stage, run.left = _Stage.ASKING, float(self.plan.items_per_run)
            asking += 1

    def _to_publish(self, run: _Run) -> None:
        run.since = self.now
        self.to_publish.append(run)
        self._build_next()

    def _build_next(self) -> None:
        if self.building is not None or not self.to_publish:
            return
        run = self.building = self.to_publish.popleft()
        self.longest_wait_s = max(self.longest_wait_s, self.now - run.since)
        self.builds += 1
        # What a run is about is known from its first request on.
        models = round(self.results / self.plan.items)
        run.stage, run.left = _Stage.BUILDING, self.costs.build_s(self.results, models)
        self.covered = {one.number for one in self.to_publish} if self.plan.coalesce else set()

    def _satisfied(self) -> list[_Run]:
        """Who has nothing left to publish."""
        done = [run for run in self.to_publish if run.number in self.covered]
        self.to_publish = deque(run for run in self.to_publish if run.number not in self.covered)
        for run in done:
            self.longest_wait_s = max(self.longest_wait_s, self.now - run.since)
        return done

    def _published(self, run: _Run) -> bool:
        """What was asked is judged next; what was judged is done."""
        if run.is_asked:
            self.working.remove(run)
            return True
        run.is_asked, run.stage, run.left = True, _Stage.JUDGING, float(self.plan.items_per_run)
        return False

    @staticmethod
    def _wait(run: _Run, stage: _Stage) -> None:
        run.stage, run.left, run.rate = stage, NEVER, 0.0


def simulated(plan: Plan, costs: Costs) -> Outcome:
    """How the plan would go."""
    return _Cluster(plan, costs).run()
