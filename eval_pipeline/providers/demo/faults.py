"""Faults of the simulated gateway: pure decisions, and the requests and replies they act on."""

import hashlib
import json
import math
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from email.utils import format_datetime
from enum import StrEnum
from functools import cached_property
from itertools import islice
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from eval_pipeline.providers.demo.minds import Mind, draw, tokens
from eval_pipeline.records import Record

ERROR_CODES = {
    401: "invalid_api_key",
    402: "insufficient_credits",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
SERVER_ERRORS = (500, 502, 503, 529)
_CAN_SAY_WHEN = {429, 503, 529}
_TOKENS_PER_IMAGE = 85
_FEW_WORDS = re.compile(r"\s*(?:\S+\s*){1,4}|\s+")

Share = Annotated[float, Field(ge=0, le=1)]
Seconds = Annotated[float, Field(ge=0, le=86_400)]
ErrorStatus = Annotated[int, Field(ge=400, le=599)]


class FaultKind(StrEnum):
    """What can go wrong; all but STATUS are also the names of the shares."""

    STATUS = "status"
    RATE_LIMITED = "rate_limited"
    SERVER_ERROR = "server_error"
    CUT_STREAM = "cut_stream"
    INVALID_JSON = "invalid_json"
    HANG = "hang"
    RESET = "reset"
    EMPTY = "empty"


class Fault(NamedTuple):
    """One misbehaviour; `status` is there if it is an HTTP error."""

    kind: FaultKind
    status: int | None = None


class Faults(Record):
    """How often and how the server misbehaves; the default is not at all."""

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
    retry_after: Literal["none", "seconds", "date"] = "none"
    retry_after_s: Seconds = 1
    models: tuple[str, ...] = ()
    times: int | None = Field(default=None, ge=0)
    status: dict[str, ErrorStatus] = Field(default_factory=dict)
    echo_key: bool = False

    @model_validator(mode="after")
    def _shares_fit(self) -> Self:
        if (total := sum(self._shares().values())) > 1 + 1e-9:
            raise ValueError(f"the shares of all faults must not exceed 1 together, got {total:g}")
        return self

    def decide(self, model: str, content_hash: str, attempt: int) -> Fault | None:
        """What goes wrong when this content is sent for the `attempt`-th time (0, 1, ...)."""
        if (status := self.status.get(model)) is not None:
            return Fault(FaultKind.STATUS, status)
        if not self._concerns(model):
            return None
        fault = self._drawn(model, content_hash, attempt)
        if fault is None or self._is_used_up(model, content_hash, attempt):
            return None
        return fault

    def delay_s(self, model: str, content_hash: str, attempt: int) -> float:
        """How long the server waits before it does anything."""
        if not self._concerns(model):
            return 0
        if not self.latency_jitter_s:
            return self.latency_s
        luck = draw("latency", str(self.seed), model, content_hash, str(attempt))
        return self.latency_s + self.latency_jitter_s * luck

    def retry_after_header(self, status: int, now: datetime) -> dict[str, str]:
        """When to come again, in the way the server was told to say it."""
        if status not in _CAN_SAY_WHEN or self.retry_after == "none":
            return {}
        if self.retry_after == "seconds":
            return {"retry-after": f"{self.retry_after_s:g}"}
        # The header has whole seconds only; rounding down would allow coming too early.
        when = math.ceil((now + timedelta(seconds=self.retry_after_s)).timestamp())
        return {
            "retry-after": format_datetime(datetime.fromtimestamp(when, now.tzinfo), usegmt=True)
        }

    def _concerns(self, model: str) -> bool:
        return not self.models or model in self.models

    def _shares(self) -> dict[FaultKind, float]:
        return {kind: getattr(self, kind) for kind in FaultKind if kind is not FaultKind.STATUS}

    def _drawn(self, model: str, content_hash: str, attempt: int) -> Fault | None:
        luck = draw("fault", str(self.seed), model, content_hash, str(attempt))
        for kind, share in self._shares().items():
            if luck < share:
                return Fault(kind, _status(kind, content_hash, attempt))
            luck -= share
        return None

    def _is_used_up(self, model: str, content_hash: str, attempt: int) -> bool:
        if self.times is None:
            return False
        earlier = (before for before in range(attempt) if self._drawn(model, content_hash, before))
        return len(list(islice(earlier, self.times))) == self.times


NO_FAULTS = Faults()


def _status(kind: FaultKind, content_hash: str, attempt: int) -> int | None:
    if kind is FaultKind.RATE_LIMITED:
        return 429
    if kind is FaultKind.SERVER_ERROR:
        # In turn for one request, and not every request starts with the same.
        first = int(draw("status", content_hash) * len(SERVER_ERRORS))
        return SERVER_ERRORS[(first + attempt) % len(SERVER_ERRORS)]
    return None


def error_body(status: int, message: str, param: str | None = None) -> dict[str, JsonValue]:
    """An error in OpenAI's shape."""
    general = "server_error" if status >= 500 else "invalid_request_error"  # noqa: PLR2004
    code = ERROR_CODES.get(status, general) if param is None else "unsupported_value"
    return {"error": {"message": message, "type": general, "param": param, "code": code}}


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Part(_Shape):
    """A part of a message: text or image."""

    type: str
    text: str = ""
    image_url: JsonValue = None


class Message(_Shape):
    """What one side said."""

    role: str
    content: str | tuple[Part, ...] | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, tuple):
            return "\n\n".join(part.text for part in self.content if part.type == "text")
        return self.content or ""

    @property
    def images(self) -> int:
        parts = self.content if isinstance(self.content, tuple) else ()
        return sum(part.type == "image_url" for part in parts)


class ChatBody(_Shape):
    """The part of a chat request that makes a difference here."""

    model: str
    messages: tuple[Message, ...] = Field(min_length=1)
    stream: bool = False
    stream_options: dict[str, JsonValue] | None = None
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)

    @property
    def asked(self) -> str:
        return next((said.text for said in reversed(self.messages) if said.role == "user"), "")

    @property
    def images(self) -> int:
        return sum(said.images for said in self.messages)

    @cached_property
    def content_hash(self) -> str:
        content = self.model_dump_json(include={"model", "messages"})
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def unsupported(self, mind: Mind) -> str | None:
        """The parameter of this request that the mind does not take."""
        if not mind.system_role and {"system", "developer"} & {said.role for said in self.messages}:
            return "messages.role"
        if not mind.temperature and self.temperature is not None:
            return "temperature"
        return "messages.content" if self.images and "image" not in mind.modalities else None


@dataclass(frozen=True)
class Reply:
    """What a model says, whole and as a stream, both spoiled if the fault is in the text."""

    body: ChatBody
    id: str
    created: int
    full_text: str
    fault: FaultKind | None

    def whole(self) -> bytes:
        """The body of a reply that is not streamed."""
        text, finish_reason = self._said()
        message: JsonValue = {"role": "assistant", "content": text}
        choice: JsonValue = {"index": 0, "message": message, "finish_reason": finish_reason}
        reply = self._object("chat.completion", choices=[choice], usage=self._usage(text))
        return reply[: len(reply) // 2] if self.fault is FaultKind.INVALID_JSON else reply

    def events(self) -> list[bytes]:
        """The events of a stream, up to where it is cut."""
        text, finish_reason = self._said()
        deltas: list[JsonValue] = [{"role": "assistant", "content": ""}]
        deltas += [{"content": words} for words in _FEW_WORDS.findall(text)]
        events = [self._event(delta, None) for delta in deltas]
        if self.fault is FaultKind.CUT_STREAM:
            return events[: len(events) // 2 + 1]
        if self.fault is FaultKind.INVALID_JSON:
            events[-1] = events[-1][: len(events[-1]) // 2] + b"\n\n"
        events.append(self._event({}, finish_reason))
        if (self.body.stream_options or {}).get("include_usage"):
            usage = self._object("chat.completion.chunk", choices=[], usage=self._usage(text))
            events.append(b"data: " + usage + b"\n\n")
        return [*events, b"data: [DONE]\n\n"]

    def _said(self) -> tuple[str, str]:
        text = "" if self.fault is FaultKind.EMPTY else self.full_text
        limits = (self.body.max_tokens, self.body.max_completion_tokens)
        most = min((limit for limit in limits if limit), default=tokens(text))
        return text[: most * 4], "stop" if tokens(text) <= most else "length"

    def _usage(self, text: str) -> JsonValue:
        prompt = sum(tokens(said.text) for said in self.body.messages)
        prompt += _TOKENS_PER_IMAGE * self.body.images
        return {
            "prompt_tokens": prompt,
            "completion_tokens": tokens(text),
            "total_tokens": prompt + tokens(text),
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        }

    def _event(self, delta: JsonValue, finish_reason: str | None) -> bytes:
        choice: JsonValue = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return b"data: " + self._object("chat.completion.chunk", choices=[choice]) + b"\n\n"

    @cached_property
    def _head(self) -> str:
        head = {"id": self.id, "created": self.created, "model": self.body.model}
        return json.dumps(head | {"system_fingerprint": "simulated"}).removesuffix("}")

    def _object(self, kind: str, **fields: JsonValue) -> bytes:
        # Joined as text: writing the same head for every event was most of a stream's cost.
        return f'{self._head}, "object": "{kind}", {json.dumps(fields)[1:]}'.encode()
