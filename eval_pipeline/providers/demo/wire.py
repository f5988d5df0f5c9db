"""The OpenAI chat dialect as the simulated gateway speaks it: requests, replies and errors."""

import hashlib
import json
import re
from dataclasses import dataclass
from functools import cached_property

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from eval_pipeline.providers.demo.faults import FaultKind
from eval_pipeline.providers.demo.minds import Mind, tokens

ERROR_CODES = {
    401: "invalid_api_key",
    402: "insufficient_credits",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_TOKENS_PER_IMAGE = 85
_FEW_WORDS = re.compile(r"\s*(?:\S+\s*){1,4}|\s+")


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
