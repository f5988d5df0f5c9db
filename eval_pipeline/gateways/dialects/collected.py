"""The parts of a reply as they arrive: what the dialects share."""

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.gateways.chat import ChatReply
from eval_pipeline.gateways.dialects.errors import Quote
from eval_pipeline.gateways.dialects.thinking import tell_apart
from eval_pipeline.records import Usage, whole_characters

DEAREST_REPLY = 1e6
MOST_TOKENS = 2**40
_ABOUT = ("id", "model", "provider", "system_fingerprint")


@dataclass(slots=True)
class Collected(ABC):
    """One reply, whole or in events; what it says of errors is quoted in the error it raises."""

    started: float
    quote: Quote
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    # What a function was called with; it is the reply where there are no words beside it.
    calls: list[str] = field(default_factory=list)
    head: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    first_token: float | None = None

    @property
    def finished(self) -> bool:
        """A stream has ended well only if the server said how the reply ended."""
        return self.finish_reason is not None

    @abstractmethod
    def add_event(self, event: dict[str, Any]) -> None:
        """Takes in one event of a stream."""

    @abstractmethod
    def add_whole(self, reply: dict[str, Any]) -> None:
        """Takes in a reply that came as one object."""

    @abstractmethod
    def used(self) -> Usage:
        """What the server says that the reply consumed."""

    def hear(self, target: list[str], said: object) -> None:
        """Adds what is said to one of the texts, if it is anything."""
        if said and isinstance(said, str):
            target.append(said)
            if self.first_token is None:
                self.first_token = time.monotonic()

    def call(self, arguments: object) -> None:
        """Adds what a function is called with; most servers write it as text."""
        if arguments and isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        self.hear(self.calls, arguments)

    def note(self, part: dict[str, Any]) -> None:
        """Keeps what the server first says about the reply."""
        head = self.head
        for name in _ABOUT:
            if name not in head and (value := part.get(name)) and isinstance(value, str):
                head[name] = value

    def reply(self, redact: Callable[[str], str]) -> ChatReply:
        """What was collected, without anything secret."""

        def text(value: str | None) -> str | None:
            return redact(whole_characters(value)) if value else None

        head, words = self.head, "".join(self.text)
        if self.calls and not words.strip():
            words = "".join(self.calls)
        thoughts = "".join(self.reasoning)
        if "<" in words:
            words, within = tell_apart(words)
            thoughts = "\n\n".join(filter(None, (thoughts, within)))
        return ChatReply(
            text=text(words) or "",
            reasoning=text(thoughts),
            refusal=text("".join(self.refusal)),
            finish_reason=text(self.finish_reason),
            usage=self.used(),
            generation_id=text(head.get("id")),
            served_by=text(head.get("provider")),
            model_reported=text(head.get("model")),
            system_fingerprint=text(head.get("system_fingerprint")),
            latency_s=time.monotonic() - self.started,
            first_token_s=None if self.first_token is None else self.first_token - self.started,
        )


def tokens(usage: object, name: str) -> int | None:
    """The stated number of tokens; None for anything that can not be one."""
    value = usage.get(name) if isinstance(usage, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < MOST_TOKENS else None


def dollars(usage: dict[str, Any]) -> float | None:
    """The gateway's own figure; None for anything that can not be one."""
    cost = usage.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool):
        return None
    return float(cost) if 0 <= cost < DEAREST_REPLY else None
