"""Chat completions as the simulated gateway speaks them, and what all its dialects share."""

import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from json.encoder import encode_basestring_ascii
from typing import Protocol, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from eval_pipeline.gateways.demo.faults import FaultKind
from eval_pipeline.gateways.demo.replies import Mind, tokens

ERROR_CODES = {
    401: "invalid_api_key",
    402: "insufficient_credits",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
FINGERPRINT = "fp_simulated"
SERVED_BY = "Simulated"
_TOKENS_PER_IMAGE = 85
_FEW_WORDS = re.compile(r"\s*(?:\S+\s*){1,4}|\s+")


def error_body(
    status: int, message: str, param: str | None = None, code: str | None = None
) -> dict[str, JsonValue]:
    """An error in OpenAI's shape."""
    general = "server_error" if status >= 500 else "invalid_request_error"  # noqa: PLR2004
    code = code or (ERROR_CODES.get(status, general) if param is None else "unsupported_value")
    return {"error": {"message": message, "type": general, "param": param, "code": code}}


class Shape(BaseModel):
    """What a client sends; what makes no difference here is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Part(Shape):
    """A part of a message: text or image."""

    type: str
    text: str = ""
    image_url: JsonValue = None


class Message(Shape):
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


@dataclass(frozen=True)
class Spoken:
    """What a mind says to a request: all of its text, and what is to go wrong with it."""

    number: int
    created: int
    text: str
    fault: FaultKind | None = None
    cost_usd: float | None = None


class Asked(Protocol):
    """A request in any dialect."""

    @property
    def chat(self) -> "ChatBody":
        """The same request as chat completions would have it."""
        ...

    def reply(self, spoken: Spoken) -> "Reply":
        """What was said, as this dialect writes it."""
        ...


class _Format(Shape):
    type: str


class ChatBody(Shape):
    """The part of a chat request that makes a difference here."""

    model: str
    messages: tuple[Message, ...] = Field(min_length=1)
    stream: bool = False
    stream_options: dict[str, JsonValue] | None = None
    temperature: float | None = None
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    response_format: _Format | None = None
    tool_choice: JsonValue = None
    web_search_options: JsonValue = None
    seed: int | None = None

    @property
    def tool(self) -> str | None:
        """The function that has to be called."""
        match self.tool_choice:
            case {"function": {"name": str(name)}}:
                return name
        return None

    @property
    def wanted(self) -> str:
        """What holds the reply to a form, in the words of the pipeline."""
        if self.tool is not None:
            return "tool"
        return "text" if self.response_format is None else self.response_format.type

    @property
    def chat(self) -> Self:
        return self

    def reply(self, spoken: Spoken) -> "Reply":
        return ChatReply(self, spoken)

    @property
    def asked(self) -> str:
        return next((said.text for said in reversed(self.messages) if said.role == "user"), "")

    @property
    def images(self) -> int:
        return sum(said.images for said in self.messages)

    @property
    def prompt_tokens(self) -> int:
        return sum(tokens(said.text) for said in self.messages) + _TOKENS_PER_IMAGE * self.images

    @cached_property
    def content_hash(self) -> str:
        parts = {"model", "messages"} if self.seed is None else {"model", "messages", "seed"}
        content = self.model_dump_json(include=parts)
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    def unsupported(self, mind: Mind) -> str | None:
        """The parameter of this request that the mind does not take."""
        if not mind.system_role and {"system", "developer"} & {said.role for said in self.messages}:
            return "messages.role"
        if not mind.temperature and self.temperature is not None:
            return "temperature"
        if not mind.web_search and self.web_search_options is not None:
            return "web_search_options"
        return "messages.content" if self.images and "image" not in mind.modalities else None


class Tool(Shape):
    """A tool that a model may use; here only the one that searches the web makes a difference."""

    type: str = "custom"


def searching(tools: Sequence[Tool]) -> JsonValue:
    """The search of the web among the tools, as chat completions ask for it."""
    return {} if any(tool.type.startswith("web_search") for tool in tools) else None


@dataclass(frozen=True)
class Reply(ABC):
    """What a model says, whole and as a stream, both spoiled if the fault is in the text."""

    body: ChatBody
    spoken: Spoken

    def whole(self) -> bytes:
        """The body of a reply that is not streamed."""
        reply = self.written()
        return reply[: len(reply) // 2] if self._has(FaultKind.INVALID_JSON) else reply

    def events(self) -> list[bytes]:
        """The events of a stream, up to where it is cut."""
        events = self.said_events()
        if self._has(FaultKind.CUT_STREAM):
            return events[: len(events) // 2 + 1]
        if self._has(FaultKind.INVALID_JSON):
            events[-1] = events[-1][: len(events[-1]) // 2] + b"\n\n"
        return events + self.end_events()

    @abstractmethod
    def written(self) -> bytes:
        """All of the reply as one object."""

    @abstractmethod
    def said_events(self) -> list[bytes]:
        """The events from the first to the last words."""

    @abstractmethod
    def end_events(self) -> list[bytes]:
        """The events that say that it is over."""

    @property
    def is_cut(self) -> bool:
        """Whether the connection is to be closed before the end."""
        return self._has(FaultKind.CUT_STREAM)

    @cached_property
    def text(self) -> str:
        return self._meant[: self._most * 4]

    @property
    def is_truncated(self) -> bool:
        return tokens(self._meant) > self._most

    @property
    def words(self) -> list[str]:
        """The text in pieces of a few words."""
        return _FEW_WORDS.findall(self.text)

    @property
    def id(self) -> str:
        return f"{self.body.content_hash}-{self.spoken.number}"

    @cached_property
    def _meant(self) -> str:
        return "" if self._has(FaultKind.EMPTY) else self.spoken.text

    @cached_property
    def _most(self) -> int:
        limits = (self.body.max_tokens, self.body.max_completion_tokens)
        return min((limit for limit in limits if limit), default=tokens(self._meant))

    def _has(self, fault: FaultKind) -> bool:
        return self.spoken.fault is fault


def forced(tool: str) -> JsonValue:
    """The choice of a function that has to be called, as chat completions write it."""
    return {"type": "function", "function": {"name": tool}}


def named_event(data: Mapping[str, JsonValue]) -> bytes:
    """An event that has its type as a name, too."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


class ChatReply(Reply):
    """A reply as chat completions have it."""

    def written(self) -> bytes:
        message: JsonValue = {"role": "assistant", "content": self.text}
        if self.body.tool is not None:
            message = {"role": "assistant", "content": None, "tool_calls": [self._call(self.text)]}
        choice: JsonValue = {"index": 0, "message": message, "finish_reason": self._reason}
        about = f'{self._head}, "object": "chat.completion", '
        return (about + json.dumps({"choices": [choice], "usage": self._usage()})[1:]).encode()

    def said_events(self) -> list[bytes]:
        if self.body.tool is not None:
            return [self._call_event(words) for words in ["", *self.words]]
        # Joined as text: writing the same parts as JSON for every event was most of the cost.
        start = f'data: {self._chunk}"choices": [{{"index": 0, "delta": {{"content": '
        end = '}, "finish_reason": null}]}\n\n'
        first = start.replace('{"content"', '{"role": "assistant", "content"')
        pieces = [encode_basestring_ascii(words) for words in self.words]
        return [f'{first}""{end}'.encode(), *(f"{start}{piece}{end}".encode() for piece in pieces)]

    def end_events(self) -> list[bytes]:
        choice = f'{{"index": 0, "delta": {{}}, "finish_reason": "{self._reason}"}}'
        events = [f'data: {self._chunk}"choices": [{choice}]}}\n\n'.encode()]
        if (self.body.stream_options or {}).get("include_usage"):
            usage = json.dumps(self._usage())
            events.append(f'data: {self._chunk}"choices": [], "usage": {usage}}}\n\n'.encode())
        return [*events, b"data: [DONE]\n\n"]

    def _call(self, arguments: str) -> JsonValue:
        function: JsonValue = {"name": self.body.tool, "arguments": arguments}
        return {"index": 0, "id": f"call_{self.id}", "type": "function", "function": function}

    def _call_event(self, arguments: str) -> bytes:
        delta = json.dumps({"tool_calls": [self._call(arguments)]})
        choice = f'{{"index": 0, "delta": {delta}, "finish_reason": null}}'
        return f'data: {self._chunk}"choices": [{choice}]}}\n\n'.encode()

    def _usage(self) -> JsonValue:
        prompt, completion = self.body.prompt_tokens, tokens(self.text)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
            **({} if self.spoken.cost_usd is None else {"cost": self.spoken.cost_usd}),
        }

    @property
    def _reason(self) -> str:
        return "length" if self.is_truncated else "stop"

    @cached_property
    def _chunk(self) -> str:
        return f'{self._head}, "object": "chat.completion.chunk", '

    @property
    def _head(self) -> str:
        """An object that is still open."""
        model = encode_basestring_ascii(self.body.model)
        return (
            f'{{"id": "chatcmpl-{self.id}", "created": {self.spoken.created}, "model": {model}, '
            f'"provider": "{SERVED_BY}", "system_fingerprint": "{FINGERPRINT}"'
        )
