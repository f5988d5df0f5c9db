"""A dialect: how requests are written and replies read, with what all dialects share."""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest
from eval_pipeline.gateways.dialects.errors import Quote
from eval_pipeline.records.base import whole_characters
from eval_pipeline.records.prediction import Usage

_OPENING = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
# Some servers put the opening tag into the prompt, so that only the closing one comes back. It
# stands on a line of its own then; an answer that only speaks of the tag is left whole.
_CLOSING_LINE = re.compile(r"^[ \t]*</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE)


class Told(NamedTuple):
    """What a reply says, and what was thought before that."""

    answer: str
    thoughts: str


def tell_apart(text: str) -> Told:
    """Blocks of thought at the beginning are no answer, nor is one that is never closed."""
    thoughts: list[str] = []
    answer = text
    while opening := _OPENING.match(answer):
        closing = _CLOSING.search(answer, opening.end())
        if closing is None:
            return Told("", _joined([*thoughts, answer[opening.end() :]]))
        thoughts.append(answer[opening.end() : closing.start()])
        answer = answer[closing.end() :]
    if not thoughts and (closing := _CLOSING_LINE.search(answer)):
        thoughts, answer = [answer[: closing.start()]], answer[closing.end() :]
    return Told(answer.lstrip() if thoughts else text, _joined(thoughts))


def _joined(thoughts: list[str]) -> str:
    return "\n\n".join(filter(None, (thought.strip() for thought in thoughts)))


_INSTRUCTING = ("system", "developer")


class Said(NamedTuple):
    """The instructions, and the messages that are left without them."""

    instructions: str
    messages: list[dict[str, JsonValue]]


def apart(request: ChatRequest) -> Said:
    """Instructions apart from the messages, for dialects that give them a place of their own."""
    told = [said for said in request.messages if said.get("role") in _INSTRUCTING]
    rest = [said for said in request.messages if said.get("role") not in _INSTRUCTING]
    texts = [text for said in told for text in _texts(said.get("content"))]
    return Said("\n\n".join(texts), rest)


def image_address(part: Mapping[str, JsonValue]) -> str | None:
    """Where the image of a message's part is, usually a data URI; None if it is no image."""
    image = part.get("image_url") if part.get("type") == "image_url" else None
    address = image.get("url") if isinstance(image, dict) else image
    return address if isinstance(address, str) else None


def merged(body: dict[str, JsonValue], extra: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The body with `extra` in it; where both have an object, the two are merged."""
    both = dict(body)
    for name, value in extra.items():
        known = body.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            both[name] = merged(known, value)
        else:
            both[name] = value
    return both


def with_tool(body: dict[str, JsonValue], tool: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The body with one more tool that the model may use."""
    tools = body.get("tools")
    return {**body, "tools": [*(tools if isinstance(tools, list) else ()), dict(tool)]}


def _texts(content: JsonValue) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            yield text


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


class Dialect(Protocol):
    """One way to write a request and to read its reply."""

    @property
    def path(self) -> str:
        """Where requests go, below the gateway's address."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """What authorises a request, and whatever else every request has to carry."""
        ...

    def body(self, request: ChatRequest) -> dict[str, JsonValue]:
        """The request as it is sent; its `extra` is merged in last."""
        ...

    def collect(self, started: float, quote: Quote) -> Collected:
        """An empty reply; `started` is monotonic time, `quote` is for errors inside of a reply."""
        ...
