"""Anthropic's messages API as the simulated gateway speaks it."""

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Literal

from pydantic import Discriminator, Field, JsonValue

from eval_pipeline.gateways.demo.chat_completions import (
    ChatBody,
    Message,
    Part,
    Reply,
    Shape,
    Spoken,
    Tool,
    forced,
    named_event,
    searching,
)
from eval_pipeline.gateways.demo.replies import tokens

_ERROR_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def messages_error_body(status: int, message: str) -> dict[str, JsonValue]:
    """An error in Anthropic's shape."""
    general = "api_error" if status >= 500 else "invalid_request_error"  # noqa: PLR2004
    kind = _ERROR_TYPES.get(status, general)
    return {"type": "error", "error": {"type": kind, "message": message}}


class _Words(Shape):
    type: Literal["text"]
    text: str

    @property
    def part(self) -> Part:
        return Part(type="text", text=self.text)


class _Data(Shape):
    type: Literal["base64"]
    media_type: str
    data: str


class _Address(Shape):
    type: Literal["url"]
    url: str


class _Image(Shape):
    type: Literal["image"]
    source: Annotated[_Data | _Address, Discriminator("type")]

    @property
    def part(self) -> Part:
        source = self.source
        if isinstance(source, _Address):
            return Part(type="image_url", image_url={"url": source.url})
        address = f"data:{source.media_type};base64,{source.data}"
        return Part(type="image_url", image_url={"url": address})


class _Message(Shape):
    role: Literal["user", "assistant"]
    content: str | tuple[Annotated[_Words | _Image, Discriminator("type")], ...]

    @property
    def message(self) -> Message:
        if isinstance(self.content, str):
            return Message(role=self.role, content=self.content)
        return Message(role=self.role, content=tuple(part.part for part in self.content))


class _ToolChoice(Shape):
    type: str
    name: str | None = None


class MessagesBody(Shape):
    """The part of a request that makes a difference here."""

    model: str
    messages: tuple[_Message, ...] = Field(min_length=1)
    max_tokens: int = Field(ge=1)
    system: str | tuple[_Words, ...] | None = None
    stream: bool = False
    temperature: float | None = None
    seed: int | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: _ToolChoice | None = None

    @cached_property
    def chat(self) -> ChatBody:
        system = self.system
        if isinstance(system, tuple):
            system = "\n\n".join(part.text for part in system)
        told = [Message(role="system", content=system)] if system else []
        return ChatBody(
            model=self.model,
            messages=(*told, *(said.message for said in self.messages)),
            stream=self.stream,
            temperature=self.temperature,
            seed=self.seed,
            web_search_options=searching(self.tools),
            max_tokens=self.max_tokens,
            tool_choice=forced(choice.name)
            if (choice := self.tool_choice) and choice.name
            else None,
        )

    def reply(self, spoken: Spoken) -> Reply:
        return MessagesReply(self.chat, spoken)


@dataclass(frozen=True)
class MessagesReply(Reply):
    """A reply as the messages API has it; if a tool has to be used, JSON becomes its input."""

    def written(self) -> bytes:
        return json.dumps(self._message([self._block(whole=True)], self._reason)).encode()

    def said_events(self) -> list[bytes]:
        return [
            named_event({"type": "message_start", "message": self._message([], None)}),
            named_event(
                {
                    "type": "content_block_start",
                    "index": 0,
                    "content_block": self._block(whole=False),
                }
            ),
            *(
                named_event(
                    {"type": "content_block_delta", "index": 0, "delta": self._delta(words)}
                )
                for words in self.words
            ),
        ]

    def end_events(self) -> list[bytes]:
        delta: JsonValue = {"stop_reason": self._reason, "stop_sequence": None}
        usage: JsonValue = {"output_tokens": tokens(self.text)}
        return [
            named_event({"type": "content_block_stop", "index": 0}),
            named_event({"type": "message_delta", "delta": delta, "usage": usage}),
            named_event({"type": "message_stop"}),
        ]

    def _message(self, content: list[JsonValue], reason: str | None) -> dict[str, JsonValue]:
        return {
            "id": f"msg_{self.id}",
            "type": "message",
            "role": "assistant",
            "model": self.body.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {
                "input_tokens": self.body.prompt_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": tokens(self.text) if reason else 1,
            },
        }

    def _block(self, *, whole: bool) -> JsonValue:
        if self._tool_input is None:
            return {"type": "text", "text": self.text if whole else ""}
        given = self._tool_input if whole else {}
        return {
            "type": "tool_use",
            "id": f"toolu_{self.id}",
            "name": self.body.tool,
            "input": given,
        }

    def _delta(self, words: str) -> JsonValue:
        if self._tool_input is None:
            return {"type": "text_delta", "text": words}
        return {"type": "input_json_delta", "partial_json": words}

    @cached_property
    def _tool_input(self) -> dict[str, JsonValue] | None:
        """What the tool is given; text that is no JSON, or a part of it, is said in words."""
        if self.body.tool is None:
            return None
        try:
            given = json.loads(self.text)
        except ValueError:
            return None
        return given if isinstance(given, dict) else None

    @property
    def _reason(self) -> str:
        if self.is_truncated:
            return "max_tokens"
        return "end_turn" if self._tool_input is None else "tool_use"
