"""The responses API as the simulated gateway speaks it."""

import json
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


class _Words(Shape):
    type: Literal["input_text", "output_text"]
    text: str

    @property
    def part(self) -> Part:
        return Part(type="text", text=self.text)


class _Image(Shape):
    type: Literal["input_image"]
    image_url: str

    @property
    def part(self) -> Part:
        return Part(type="image_url", image_url=self.image_url)


class _Item(Shape):
    role: Literal["user", "assistant", "system", "developer"]
    content: str | tuple[Annotated[_Words | _Image, Discriminator("type")], ...]

    @property
    def message(self) -> Message:
        if isinstance(self.content, str):
            return Message(role=self.role, content=self.content)
        return Message(role=self.role, content=tuple(part.part for part in self.content))


class _ToolChoice(Shape):
    name: str


class _Text(Shape):
    format: dict[str, JsonValue] | None = None


class ResponsesBody(Shape):
    """The part of a request that makes a difference here."""

    model: str
    input: str | Annotated[tuple[_Item, ...], Field(min_length=1)]
    instructions: str | None = None
    stream: bool = False
    temperature: float | None = None
    seed: int | None = None
    tools: tuple[Tool, ...] = ()
    max_output_tokens: int | None = Field(default=None, ge=1)
    text: _Text = _Text()
    tool_choice: _ToolChoice | str | None = None

    @cached_property
    def chat(self) -> ChatBody:
        told = [Message(role="system", content=self.instructions)] if self.instructions else []
        items = (
            (_Item(role="user", content=self.input),) if isinstance(self.input, str) else self.input
        )
        return ChatBody(
            model=self.model,
            messages=(*told, *(item.message for item in items)),
            stream=self.stream,
            temperature=self.temperature,
            seed=self.seed,
            web_search_options=searching(self.tools),
            max_tokens=self.max_output_tokens,
            response_format=self.text.format,
            tool_choice=forced(tool.name)
            if isinstance(tool := self.tool_choice, _ToolChoice)
            else None,
        )

    def reply(self, spoken: Spoken) -> Reply:
        return ResponsesReply(self.chat, spoken)


class ResponsesReply(Reply):
    """A reply as the responses API has it."""

    def written(self) -> bytes:
        return json.dumps(self._response(done=True)).encode()

    def said_events(self) -> list[bytes]:
        place: dict[str, JsonValue] = {"item_id": self._item_id, "output_index": 0}
        place |= {"content_index": 0}
        return [
            named_event({"type": "response.created", "response": self._response(done=False)}),
            *(
                named_event({"type": f"response.{self._kind}.delta", **place, "delta": words})
                for words in self.words
            ),
        ]

    def end_events(self) -> list[bytes]:
        response = self._response(done=True)
        name = "text" if self.body.tool is None else "arguments"
        said: dict[str, JsonValue] = {"type": f"response.{self._kind}.done", name: self.text}
        last: dict[str, JsonValue] = {"type": f"response.{self._status}", "response": response}
        return [named_event(said), named_event(last)]

    def _response(self, *, done: bool) -> dict[str, JsonValue]:
        reason: JsonValue = {"reason": "max_output_tokens"} if self.is_truncated else None
        return {
            "id": f"resp_{self.id}",
            "object": "response",
            "created_at": self.spoken.created,
            "model": self.body.model,
            "status": self._status if done else "in_progress",
            "error": None,
            "incomplete_details": reason if done else None,
            "output": [self._said()] if done else [],
            "usage": self._usage() if done else None,
        }

    def _said(self) -> JsonValue:
        if self.body.tool is None:
            return self._message()
        return {
            "type": "function_call",
            "id": self._item_id,
            "call_id": f"call_{self.id}",
            "name": self.body.tool,
            "arguments": self.text,
            "status": self._status,
        }

    def _message(self) -> JsonValue:
        words: JsonValue = {"type": "output_text", "text": self.text, "annotations": []}
        return {
            "type": "message",
            "id": self._item_id,
            "role": "assistant",
            "status": self._status,
            "content": [words],
        }

    def _usage(self) -> JsonValue:
        read, written = self.body.prompt_tokens, tokens(self.text)
        return {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        }

    @property
    def _status(self) -> str:
        return "incomplete" if self.is_truncated else "completed"

    @property
    def _kind(self) -> str:
        return "output_text" if self.body.tool is None else "function_call_arguments"

    @property
    def _item_id(self) -> str:
        return f"item_{self.id}"
