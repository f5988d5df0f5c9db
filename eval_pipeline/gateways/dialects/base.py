"""The parts of requests that all dialects share, and the reply as it is collected."""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ChatRequest
from eval_pipeline.gateways.dialects.errors import Quote, reply_error
from eval_pipeline.records.base import whole_characters
from eval_pipeline.records.prediction import Usage

Body = dict[str, JsonValue]

_OPENING = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
# Some servers put the opening tag into the prompt, so that only the closing one comes back,
# on a line of its own; an answer that only mentions the tag is left whole.
_CLOSING_LINE = re.compile(r"^[ \t]*</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE)
_INSTRUCTING = ("system", "developer")
DEAREST_REPLY = 1e6
MOST_TOKENS = 2**40
_ABOUT = ("id", "model", "provider", "system_fingerprint")


def split_thoughts(text: str) -> tuple[str, str]:
    """Return the answer and the blocks of thought before it, of which the last may be unclosed."""
    thoughts: list[str] = []
    answer = text
    while opening := _OPENING.match(answer):
        closing = _CLOSING.search(answer, opening.end())
        if closing is None:
            return "", _joined([*thoughts, answer[opening.end() :]])
        thoughts.append(answer[opening.end() : closing.start()])
        answer = answer[closing.end() :]
    if not thoughts and (closing := _CLOSING_LINE.search(answer)):
        thoughts, answer = [answer[: closing.start()]], answer[closing.end() :]
    return answer.lstrip() if thoughts else text, _joined(thoughts)


def _joined(thoughts: list[str]) -> str:
    return "\n\n".join(filter(None, (thought.strip() for thought in thoughts)))


def split_instructions(request: ChatRequest) -> tuple[str, list[Body]]:
    """Return the instructions and the other messages, for dialects that part them."""
    rest = [one for one in request.messages if one.get("role") not in _INSTRUCTING]
    contents = (m.get("content") for m in request.messages if m.get("role") in _INSTRUCTING)
    return "\n\n".join(text for content in contents for text in texts(content)), rest


def texts(content: object) -> Iterator[str]:
    """Yield the texts of a message, which is a text itself or a list of parts."""
    if isinstance(content, str):
        yield content
    for part in objects(content):
        if isinstance(text := part.get("text") or part.get("summary"), str):
            yield text


def objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list; nothing if it is no list."""
    yield from (part for part in value if isinstance(part, dict)) if isinstance(value, list) else ()


def object_in(part: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return the object of that name; an empty one if there is none."""
    value = part.get(name)
    return value if isinstance(value, dict) else {}


def with_parts(message: Body, convert: Callable[[Body], JsonValue]) -> JsonValue:
    """Return role and content of the message, with the parts of the content converted."""
    content = message.get("content")
    if isinstance(content, list):
        content = [convert(part) if isinstance(part, dict) else part for part in content]
    return {"role": message.get("role"), "content": content}


def image_address(part: Mapping[str, JsonValue]) -> str | None:
    """Return the address of an image part, usually a data URI; None if it is no image."""
    image = part.get("image_url") if part.get("type") == "image_url" else None
    address = image.get("url") if isinstance(image, dict) else image
    return address if isinstance(address, str) else None


def completed(
    body: Body, request: ChatRequest, limit: str, search_tool: Body | None = None
) -> Body:
    """Add what all dialects say alike, and merge in the request's extra parameters last."""
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body[limit] = request.max_tokens
    if request.stream:
        body["stream"] = True
    if request.web_search and search_tool is not None:
        tools = body.get("tools")
        body["tools"] = [*(tools if isinstance(tools, list) else ()), search_tool]
    return _merged(body, request.extra)


def _merged(body: Body, extra: Mapping[str, JsonValue]) -> Body:
    """Return the body with `extra` in it; where both have an object, the two are merged."""
    both = {**body, **extra}
    for name in body.keys() & extra.keys():
        old, new = body[name], extra[name]
        if isinstance(old, dict) and isinstance(new, dict):
            both[name] = _merged(old, new)
    return both


@dataclass(slots=True)
class ReplyBuilder(ABC):
    """One reply, whole or in events; what it says of errors is quoted in the error it raises."""

    started: float
    quote: Quote
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    # The arguments of function calls; they are the reply where there are no words beside them.
    calls: list[str] = field(default_factory=list)
    head: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    first_token: float | None = None

    @property
    def finished(self) -> bool:
        """Return whether the server said how the reply ended; if not, a stream was cut."""
        return self.finish_reason is not None

    @abstractmethod
    def add_event(self, event: dict[str, Any]) -> None:
        """Take in one event of a stream."""

    def add_whole(self, reply: dict[str, Any]) -> None:
        """Take in a reply that came as one object."""
        self.raise_error(reply)
        self._add_whole(reply)
        self.first_token = None

    @abstractmethod
    def _add_whole(self, reply: dict[str, Any]) -> None: ...

    @abstractmethod
    def _tokens(self) -> dict[str, int | None]:
        """Return the fields of Usage that count tokens, as far as the server states them."""

    def raise_error(self, part: dict[str, Any]) -> None:
        """Raise the error that this part of the reply is or has, if any."""
        if (error := part.get("error")) or part.get("type") == "error":
            raise reply_error(error or part, self.quote)

    def hear(self, target: list[str], said: object) -> None:
        """Add words to one of the texts."""
        if said and isinstance(said, str):
            target.append(said)
            if self.first_token is None:
                self.first_token = time.monotonic()

    def call(self, arguments: object) -> None:
        """Add the arguments of a function call; most servers write them as text."""
        if arguments and isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        self.hear(self.calls, arguments)

    def note(self, part: dict[str, Any]) -> None:
        """Keep what the server first says about the reply."""
        head = self.head
        for name in _ABOUT:
            if name not in head and (value := part.get(name)) and isinstance(value, str):
                head[name] = value

    def reply(self, redact: Callable[[str], str]) -> ChatReply:
        """Return what was collected, without anything secret."""

        def text(value: str | None) -> str | None:
            return redact(whole_characters(value)) if value else None

        cost = dollars(self.usage)
        head, words = self.head, "".join(self.text)
        if self.calls and not words.strip():
            words = "".join(self.calls)
        thoughts = "".join(self.reasoning)
        if "<" in words:
            words, within = split_thoughts(words)
            thoughts = "\n\n".join(filter(None, (thoughts, within)))
        return ChatReply(
            text=text(words) or "",
            reasoning=text(thoughts),
            refusal=text("".join(self.refusal)),
            finish_reason=text(self.finish_reason),
            usage=Usage(**self._tokens(), cost_usd=cost, cost_estimated=cost is None),
            generation_id=text(head.get("id")),
            served_by=text(head.get("provider")),
            model_reported=text(head.get("model")),
            system_fingerprint=text(head.get("system_fingerprint")),
            latency_s=time.monotonic() - self.started,
            first_token_s=None if self.first_token is None else self.first_token - self.started,
        )


def tokens(usage: object, name: str) -> int | None:
    """Return the stated number of tokens; None for anything that cannot be one."""
    value = usage.get(name) if isinstance(usage, dict) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value < MOST_TOKENS else None


def dollars(usage: dict[str, Any]) -> float | None:
    """Return the gateway's own figure; None for anything that cannot be one."""
    cost = usage.get("cost")
    if not isinstance(cost, int | float) or isinstance(cost, bool):
        return None
    return float(cost) if 0 <= cost < DEAREST_REPLY else None


def _bearer(key: str | None) -> dict[str, str]:
    return {} if key is None else {"authorization": f"Bearer {key}"}


@dataclass(frozen=True)
class Dialect:
    """One way to write a request and to read its reply."""

    path: str
    """Where requests go, below the gateway's address."""
    body: Callable[[ChatRequest], Body]
    collect: Callable[[float, Quote], ReplyBuilder]
    """Makes an empty reply from its start (monotonic) and a function that quotes errors."""
    headers: Callable[[str | None], dict[str, str]] = _bearer
    """What authorizes a request with a key, and what else every request has to carry."""
