"""The faults of the simulated gateway, as pure decisions."""

import math
from datetime import datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from functools import cached_property
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from eval_pipeline.gateways.demo.replies import draw
from eval_pipeline.records.base import Record

SERVER_ERRORS = (500, 502, 503, 529)
_CAN_SAY_WHEN = {429, 503, 529}
_WAYS: tuple[Literal["none", "seconds", "date"], ...] = ("none", "seconds", "date")

Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
ErrorStatus = Annotated[int, Field(ge=400, le=599)]


class FaultKind(StrEnum):
    """The kinds of faults; all but STATUS are also the names of the shares."""

    STATUS = "status"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    CUT_STREAM = "cut_stream"
    INVALID_JSON = "invalid_json"
    HANG = "hang"
    RESET = "reset"
    EMPTY = "empty"
    CONTEXT_TOO_LONG = "context_too_long"


class Fault(NamedTuple):
    """One fault; it has a status if it is an HTTP error."""

    kind: FaultKind
    status: int | None = None


class Faults(Record):
    """The faults of the server and their shares; there are none by default."""

    seed: int = 0
    latency_s: Seconds = 0
    latency_jitter_s: Seconds = 0
    rate_limited: Share = 0
    server_error: Share = 0
    cut_stream: Share = 0
    invalid_json: Share = 0
    hang: Share = 0
    reset: Share = 0
    empty: Share = 0
    context_too_long: Share = 0
    drip_s: Seconds = 0
    most_at_once: int | None = Field(default=None, ge=1)
    retry_after: Literal["none", "seconds", "date", "mixed"] = "none"
    retry_after_s: Seconds = 1
    models: tuple[str, ...] = ()
    times: int | None = Field(default=None, ge=0)
    status: dict[str, ErrorStatus] = Field(default_factory=dict)
    echo_key: bool = False
    cost_usd: float | None = Field(default=None, ge=0)
    refuses: tuple[Literal["json_schema", "tool"], ...] = ()
    flickering: Share = 0

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if (total := sum(self._shares.values())) > 1 + 1e-9:
            raise ValueError(f"the shares of all faults must not exceed 1 together, got {total:g}")
        return self

    def decide(self, model: str, content_hash: str, attempt: int) -> Fault | None:
        """Return the fault when this content is sent for the `attempt`-th time (0, 1, ...)."""
        if (status := self.status.get(model)) is not None:
            return Fault(FaultKind.STATUS, status)
        if not self._concerns(model) or self._is_used_up(model, content_hash, attempt):
            return None
        return self._drawn(model, content_hash, attempt)

    def refused(self, model: str, wanted: str) -> bool:
        """Return whether the server refuses requests for that format of a reply."""
        return wanted in self.refuses and self._concerns(model)

    def flickers(self, model: str, content_hash: str, attempt: int) -> bool:
        """Return whether a judge says the contrary of what it finds, this time."""
        luck = self._luck("flicker", model, content_hash, attempt)
        return luck < self.flickering and self._concerns(model)

    def is_too_many(self, model: str, at_once: int) -> bool:
        """Return whether the server refuses this number of requests at once."""
        most = self.most_at_once
        return most is not None and at_once > most and self._concerns(model)

    def delay_s(self, model: str, content_hash: str, attempt: int) -> float:
        """Return how long the server waits before it does anything."""
        if not self._concerns(model):
            return 0
        luck = self._luck("latency", model, content_hash, attempt)
        return self.latency_s + self.latency_jitter_s * luck

    def drip(self, model: str) -> float:
        """Return how long the server waits between two pieces of a stream."""
        return self.drip_s if self._concerns(model) else 0

    def retry_after_header(
        self, status: int, now: datetime, content_hash: str = ""
    ) -> dict[str, str]:
        """Return the header that says when to come again, written as configured."""
        way = self.retry_after
        if way == "mixed":
            way = _WAYS[int(draw("retry-after", content_hash) * len(_WAYS))]
        if status not in _CAN_SAY_WHEN or way == "none":
            return {}
        if way == "seconds":
            return {"retry-after": f"{self.retry_after_s:g}"}
        # The header has whole seconds only; rounding down would allow coming too early.
        when = math.ceil((now + timedelta(seconds=self.retry_after_s)).timestamp())
        moment = datetime.fromtimestamp(when, now.tzinfo)
        return {"retry-after": format_datetime(moment, usegmt=True)}

    def _concerns(self, model: str) -> bool:
        return not self.models or model in self.models

    def _luck(self, what: str, model: str, content_hash: str, attempt: int) -> float:
        return draw(what, str(self.seed), model, content_hash, str(attempt))

    @cached_property
    def _shares(self) -> dict[FaultKind, float]:
        kinds = (kind for kind in FaultKind if kind is not FaultKind.STATUS)
        return {kind: share for kind in kinds if (share := getattr(self, kind))}

    def _drawn(self, model: str, content_hash: str, attempt: int) -> Fault | None:
        luck = self._luck("fault", model, content_hash, attempt)
        for kind, share in self._shares.items():
            if luck < share:
                return Fault(kind, _status(kind, content_hash, attempt))
            luck -= share
        return None

    def _is_used_up(self, model: str, content_hash: str, attempt: int) -> bool:
        earlier = (self._drawn(model, content_hash, before) for before in range(attempt))
        return self.times is not None and len(list(filter(None, earlier))) >= self.times


NO_FAULTS = Faults()


def _status(kind: FaultKind, content_hash: str, attempt: int) -> int | None:
    if kind is FaultKind.SERVER_ERROR:
        # In turn for one request, and not every request starts with the same.
        first = int(draw("status", content_hash) * len(SERVER_ERRORS))
        return SERVER_ERRORS[(first + attempt) % len(SERVER_ERRORS)]
    return {FaultKind.RATE_LIMITED: 429, FaultKind.CONTEXT_TOO_LONG: 400}.get(kind)
