"""Anthropic's messages API."""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.dialects.base import (
    Collected,
    apart,
    dollars,
    image_address,
    merged,
    tokens,
    with_tool,
)
from eval_pipeline.gateways.dialects.errors import Quote, broken_off, no_reply, reply_error
from eval_pipeline.records.prediction import Usage

VERSION = "2023-06-01"
MAX_TOKENS = 16_384
"""What is asked for where no limit is set: this API takes no request without one."""
MAX_SEARCHES = 5
"""How often a model may search the web before it answers."""

_WEB_SEARCH: dict[str, JsonValue] = {
    "type": "web_search_20250305",
    "name": "web_search",
    "max_uses": MAX_SEARCHES,
}


@dataclass(frozen=True)
class Messages:
    """Speaks the messages API.

    A JSON schema is sent as a tool of its name that the model has to use, and the tool's input
    becomes the text of the reply. Thinking can not be switched on together with that.
    """

    path: str = "messages"

    def headers(self, key: str | None) -> dict[str, str]:
        """What authorises a request, and the version of the API that is spoken."""
        version = {"anthropic-version": VERSION}
        return version if key is None else version | {"x-api-key": key}

    def body(self, request: ChatRequest) -> dict[str, JsonValue]:
        """The request as it is sent, with only what was asked for and a token limit."""
        said = apart(request)
        body: dict[str, JsonValue] = {
            "model": request.model,
            "max_tokens": MAX_TOKENS if request.max_tokens is None else request.max_tokens,
            "messages": [_message(message) for message in said.messages],
        }
        if said.instructions:
            body["system"] = said.instructions
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if schema := request.tool or request.json_schema:
            body |= _tool(schema)
        if request.web_search:
            body = with_tool(body, _WEB_SEARCH)
        if request.stream:
            body["stream"] = True
        return merged(body, request.extra)

    def collect(self, started: float, quote: Quote) -> Collected:
        """An empty reply to be filled."""
        return _MessageCollected(started, quote)


@dataclass(slots=True)
class _MessageCollected(Collected):
    stopped: bool = False
    # Once the tool is used, its input is the reply, and words beside it are not.
    uses_tool: bool = False
    # Server-side tools stream their input in the same events; theirs is no part of the reply.
    in_tool: bool = False

    @property
    def finished(self) -> bool:
        """Whether the server said that, or why, it stopped."""
        return self.stopped or self.finish_reason is not None

    def add_event(self, event: dict[str, Any]) -> None:
        kind, error = event.get("type"), event.get("error")
        if kind == "error" or error:
            raise reply_error(error or event, self.quote)
        if kind == "content_block_delta":
            self._add_delta(_object(event, "delta"))
        elif kind == "content_block_start":
            self._start_block(_object(event, "content_block"))
        elif kind == "message_start":
            self._add_head(_object(event, "message"))
        elif kind == "message_delta":
            self._add_usage(event)
            self._end(_object(event, "delta"))
        elif kind == "message_stop":
            self.stopped = True

    def add_whole(self, reply: dict[str, Any]) -> None:
        if reply.get("type") == "error" or reply.get("error"):
            raise reply_error(reply.get("error") or reply, self.quote)
        content = reply.get("content")
        if not isinstance(content, list):
            raise no_reply("content")
        self._add_head(reply)
        for block in content:
            if isinstance(block, dict):
                self._add_block(block)
        self._end(reply)
        self.first_token = None  # it came as a whole

    def used(self) -> Usage:
        usage, cost = self.usage, dollars(self.usage)
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        read = [count for name in names if (count := tokens(usage, name)) is not None]
        return Usage(
            input_tokens=sum(read) if tokens(usage, "input_tokens") is not None else None,
            output_tokens=tokens(usage, "output_tokens"),
            cached_tokens=tokens(usage, "cache_read_input_tokens"),
            cost_usd=cost,
            cost_estimated=cost is None,
        )

    def _add_head(self, message: dict[str, Any]) -> None:
        self.note(message)
        self._add_usage(message)

    def _add_usage(self, part: dict[str, Any]) -> None:
        """Later numbers replace earlier ones, each by itself."""
        stated = _object(part, "usage")
        self.usage |= {name: value for name, value in stated.items() if value is not None}

    def _start_block(self, block: dict[str, Any]) -> None:
        self.in_tool = block.get("type") == "tool_use"
        if self.in_tool:
            self._use_tool()
        else:
            self._add_block(block)

    def _add_block(self, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text" and not self.uses_tool:
            self.hear(self.text, block.get("text"))
        elif kind == "thinking":
            self.hear(self.reasoning, block.get("thinking"))
        elif kind == "tool_use":
            self._use_tool()
            given = block.get("input")
            self.hear(self.text, json.dumps(given, ensure_ascii=False) if given else "")

    def _add_delta(self, delta: dict[str, Any]) -> None:
        kind = delta.get("type")
        if kind == "text_delta" and not self.uses_tool:
            self.hear(self.text, delta.get("text"))
        elif kind == "thinking_delta":
            self.hear(self.reasoning, delta.get("thinking"))
        elif kind == "input_json_delta" and self.in_tool:
            self.hear(self.text, delta.get("partial_json"))

    def _use_tool(self) -> None:
        if not self.uses_tool:
            self.uses_tool = True
            self.text.clear()

    def _end(self, part: dict[str, Any]) -> None:
        reason = part.get("stop_reason")
        if reason == "pause_turn":
            raise broken_off(reason)
        if reason and isinstance(reason, str):
            self.finish_reason = reason


def _object(part: dict[str, Any], name: str) -> dict[str, Any]:
    value = part.get(name)
    return value if isinstance(value, dict) else {}


def _message(message: dict[str, JsonValue]) -> JsonValue:
    content = message.get("content")
    if isinstance(content, list):
        content = [_part(part) for part in content]
    return {"role": message.get("role"), "content": content}


def _part(part: JsonValue) -> JsonValue:
    address = image_address(part) if isinstance(part, dict) else None
    if address is None:
        return part
    return {"type": "image", "source": _image_source(address)}


def _image_source(address: str) -> JsonValue:
    head, comma, data = address.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return {"type": "url", "url": address}
    media_type = head.removeprefix("data:").partition(";")[0]
    return {"type": "base64", "media_type": media_type, "data": data}


def _tool(json_schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    name = json_schema.get("name") or "reply"
    tool: JsonValue = {"name": name, "input_schema": json_schema.get("schema")}
    # Two uses at once would be two replies.
    choice: JsonValue = {"type": "tool", "name": name, "disable_parallel_tool_use": True}
    return {"tools": [tool], "tool_choice": choice}
