"""Progress of stages at work, shown to the launch that watches them in the same process."""

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum

from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.settings.sections import Budget

RATE_OVER_S = 30.0
ENOUGH_FOR_A_RATE = 5
"""Where answers are rare, the rate is the mean over this many, however long they took."""
BETWEEN_SAMPLES_S = 1.0


@dataclass
class Stage:
    """A stage at work: one tally per model, which other threads add to."""

    tallies: Sequence[StageProgress]
    judges: Sequence[str] = ()
    budget: Budget = field(default_factory=Budget)
    simulated: Collection[str] = ()
    over: bool = False


@dataclass
class Watch:
    """The stages so far; the last one is at work or just over."""

    stages: list[Stage] = field(default_factory=list)

    @property
    def stage(self) -> Stage | None:
        return self.stages[-1] if self.stages else None


_watch: ContextVar[Watch | None] = ContextVar("watch", default=None)


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch the stages that are launched in this block; nested blocks share one watch."""
    watch = _watch.get() or Watch()
    before = _watch.set(watch)
    try:
        yield watch
    finally:
        _watch.reset(before)


@contextmanager
def under_way(describe: Callable[[], Stage]) -> Iterator[None]:
    """Add a stage to the watch while it works; without a watch it is not even described."""
    watch = _watch.get()
    if watch is None:
        yield
        return
    stage = describe()
    watch.stages.append(stage)
    try:
        yield
    finally:
        stage.over = True


class State(StrEnum):
    """The state of one model in a stage."""

    WORKING = "working"
    STOPPED = "stopped"
    WAITING = "waiting"
    DONE = "done"
    CUT_SHORT = "cut short"
    UNTOUCHED = "nothing done"


class Phase(StrEnum):
    """The phase of the launch as a whole."""

    PREPARING = "preparing"
    WORKING = "working"
    COMPUTING = "computing"


def state_of(tally: StageProgress, *, over: bool) -> State:
    """Return the state; a tally looks the same while it waits and if nothing is to be done."""
    if tally.stopped is not None:
        return State.STOPPED
    if not tally.planned:
        return State.UNTOUCHED if over else State.WAITING
    if tally.asked >= tally.planned:
        return State.DONE
    return State.CUT_SHORT if over else State.WORKING


class Pace:
    """The rate at which something is counted, over recent samples and not since the start."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now: float, done: int) -> None:
        """Add a sample; while nothing is counted none is needed."""
        samples = self._samples
        if samples and (samples[-1][1] == done or now - samples[-1][0] < BETWEEN_SAMPLES_S):
            return
        samples.append((now, done))
        while (
            len(samples) > 1
            and now - samples[1][0] >= RATE_OVER_S
            and done - samples[1][1] >= ENOUGH_FOR_A_RATE
        ):
            samples.popleft()

    def rate(self, now: float, done: int) -> float | None:
        """Return the rate per second; None while it is unknown."""
        if not self._samples:
            return None
        began, before = self._samples[0]
        return (done - before) / (now - began) if now > began and done > before else None


def left_s(left: int, rate: float | None) -> float | None:
    """Return the seconds until the rest is done; None if unknown."""
    return left / rate if rate else None


@dataclass
class Standing(StageProgress):
    """A copy of a model's progress at one moment, with what follows from it."""

    state: State = State.WAITING
    rate: float | None = None
    simulated: bool = False

    @property
    def done(self) -> int:
        return self.asked

    @property
    def left_s(self) -> float | None:
        """The seconds until the rest is done; None if unknown."""
        return left_s(self.planned - self.asked, self.rate)

    @property
    def failures(self) -> Mapping[Outcome, int]:
        """Outcomes other than ok: first what has to be asked again, then the most frequent."""
        in_order = sorted(self.outcomes.items(), key=lambda one: (one[0].is_result, -one[1]))
        return {outcome: count for outcome, count in in_order if outcome is not Outcome.OK}


@dataclass(frozen=True)
class Glance:
    """The progress of the launch at one moment."""

    stage: Stage | None
    standings: tuple[Standing, ...]
    elapsed_s: float
    # With what the stages before this one have cost.
    launch_usd: float

    @property
    def phase(self) -> Phase:
        """The phase; after a stage that was cut short nothing follows, so it stays the same."""
        if self.stage is None:
            return Phase.PREPARING
        if self.stage.over and all(one.state is not State.CUT_SHORT for one in self.standings):
            return Phase.COMPUTING
        return Phase.WORKING if self.standings else Phase.PREPARING

    @property
    def left_s(self) -> float | None:
        """Seconds until the slowest model at work is done; those that wait are not counted."""
        working = [one.left_s for one in self.standings if one.state is State.WORKING]
        known = [left for left in working if left is not None]
        return max(known) if known and len(known) == len(working) else None


class Follower:
    """Looks at a watch from time to time, and measures the rates."""

    def __init__(self, watch: Watch, began: float) -> None:
        self._watch = watch
        self._began = began
        self._stage: Stage | None = None
        self._paces: dict[str, Pace] = {}

    def look(self, now: float) -> Glance:
        """Return the progress now."""
        stage = self._watch.stage
        if stage is not self._stage:
            self._stage, self._paces = stage, {}
        # Copies: the stages add to theirs while this looks.
        tallies = list(stage.tallies) if stage else []
        standings = tuple(self._standing(tally, now) for tally in tallies)
        usd = sum(tally.cost_usd for one in list(self._watch.stages) for tally in list(one.tallies))
        return Glance(stage, standings, now - self._began, usd)

    def _standing(self, tally: StageProgress, now: float) -> Standing:
        stage, pace = self._stage, self._paces.setdefault(tally.model, Pace())
        copied = vars(tally) | {"outcomes": Counter(tally.outcomes)}
        standing = Standing(
            **copied,
            state=state_of(tally, over=stage is None or stage.over),
            simulated=stage is not None and tally.model.partition(" by ")[0] in stage.simulated,
        )
        if standing.planned:  # what it waits before that says nothing about its pace
            pace.note(now, standing.done)
        standing.rate = pace.rate(now, standing.done)
        return standing
