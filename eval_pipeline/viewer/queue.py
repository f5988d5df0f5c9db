"""Dagster's queue as Prometheus is told of it: read beside the server, which never waits long."""

import logging
import math
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from eval_pipeline.settings import Settings
from eval_pipeline.viewer.exposition import Family, Sample

if TYPE_CHECKING:
    from eval_pipeline.defs.instance import Waiting

LOOK_EVERY_S = 10.0
LONGEST_S = 0.25
"""So long is waited for Dagster's storage; what comes later is told the next time."""
OLDEST_S = 90.0
"""What was seen so long ago is no longer told."""

log = logging.getLogger(__name__)
Look = Callable[[Settings], "Waiting | None"]


def look(settings: Settings) -> "Waiting | None":
    """Asks Dagster, which takes a second to load: not before somebody wants to know."""
    from eval_pipeline.defs.instance import look_at_queue  # noqa: PLC0415

    return look_at_queue(settings)


class Queue:
    """Looks at most every ten seconds, in a thread of its own."""

    def __init__(self, settings: Settings, look: Look = look, longest_s: float = LONGEST_S) -> None:
        self._settings, self._look, self._longest_s = settings, look, longest_s
        self._own_thread = ThreadPoolExecutor(1, "queue")
        self._looking: Future[None] | None = None
        self._asked_at = self._seen_at = -math.inf
        self._seen: Waiting | None = None

    def families(self) -> Iterator[Family]:
        """What is known of it; if that is nothing, the server has more to tell all the same."""
        waiting = self._waiting()
        about = "Whether Dagster's storage could be read."
        yield Family("evals_dagster_up", "gauge", about, [Sample(waiting is not None)])
        if waiting is None:
            return
        counts = [Sample(count, {"status": status}) for status, count in waiting.runs.items()]
        yield Family("evals_dagster_runs", "gauge", "Dagster's runs that have not ended.", counts)
        yield Family(
            "evals_dagster_oldest_queued_seconds",
            "gauge",
            "Since when the first of the queued runs waits.",
            [Sample(waiting.oldest_queued_s)],
        )

    def _waiting(self) -> "Waiting | None":
        looking = self._looking
        if looking is None or (looking.done() and monotonic() > self._asked_at + LOOK_EVERY_S):
            self._asked_at = monotonic()
            looking = self._looking = self._own_thread.submit(self._look_now)
        with suppress(TimeoutError):
            looking.result(self._longest_s)
        return self._seen if monotonic() < self._seen_at + OLDEST_S else None

    def _look_now(self) -> None:
        try:
            self._seen = self._look(self._settings)
            self._seen_at = monotonic()
        except Exception as error:  # noqa: BLE001  (a storage of any kind, down in any way)
            # Its words may have an address with a password in them.
            log.warning("Dagster's storage can not be read: %s.", type(error).__name__)
