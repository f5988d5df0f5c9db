"""Anthropic's messages API.

A JSON schema is sent as a tool of its name that the model has to use, and the tool's input becomes
the text of the reply. Thinking cannot be switched on together with that.
"""

import json
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.dialects.base import (
    Body,
    Dialect,
    ReplyBuilder,
    completed,
    image_address,
    object_in,
    objects,
    split_instructions,
    tokens,
    with_parts,
)
from eval_pipeline.gateways.dialects.errors import broken_off, no_reply

VERSION = "2023-06-01"
MAX_TOKENS = 16_384
"""What is asked for where no limit is set: this API takes no request without one."""
_WEB_SEARCH: Body = {"type": "web_search_20250305", "name": "web_search", "max_uses": 5}


def _headers(key: str | None) -> dict[str, str]:
    version = {"anthropic-version": VERSION}
    return version if key is None else version | {"x-api-key": key}


def _body(request: ChatRequest) -> Body:
    instructions, messages = split_instructions(request)
    said: JsonValue = [with_parts(message, _part) for message in messages]
    body: Body = {"model": request.model, "max_tokens": MAX_TOKENS, "messages": said}
    if instructions:
        body["system"] = instructions
    if tool := request.tool or request.json_schema:
        body["tools"] = [{"name": tool["name"], "input_schema": tool["schema"]}]
        # Two uses at once would be two replies.
        only_one: Body = {"disable_parallel_tool_use": True}
        body["tool_choice"] = {"type": "tool", "name": tool["name"], **only_one}
    return completed(body, request, "max_tokens", _WEB_SEARCH)


def _part(part: Body) -> JsonValue:
    address = image_address(part)
    return part if address is None else {"type": "image", "source": _image_source(address)}


def _image_source(address: str) -> JsonValue:
    head, comma, data = address.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return {"type": "url", "url": address}
    media_type = head.removeprefix("data:").partition(";")[0]
    return {"type": "base64", "media_type": media_type, "data": data}


@dataclass(slots=True)
class _MessageReply(ReplyBuilder):
    stopped: bool = False
    # Once the tool is used, its input is the reply, and words beside it are not.
    uses_tool: bool = False
    # Server-side tools stream their input in the same events; theirs is no part of the reply.
    in_tool: bool = False

    @property
    def finished(self) -> bool:
        """Return whether the server said that, or why, it stopped."""
        return self.stopped or self.finish_reason is not None

    def add_event(self, event: dict[str, Any]) -> None:
        self.raise_error(event)
        kind = event.get("type")
        if kind == "content_block_delta":
            self._add_delta(object_in(event, "delta"))
        elif kind == "content_block_start":
            block = object_in(event, "content_block")
            self.in_tool = block.get("type") == "tool_use"
            self._add_block(block | {"input": None})  # which follows in deltas
        elif kind == "message_start":
            message = object_in(event, "message")
            self.note(message)
            self._add_usage(message)
        elif kind == "message_delta":
            self._add_usage(event)
            self._end(object_in(event, "delta"))
        elif kind == "message_stop":
            self.stopped = True

    def _add_whole(self, reply: dict[str, Any]) -> None:
        content = reply.get("content")
        if not isinstance(content, list):
            raise no_reply("content")
        self.note(reply)
        self._add_usage(reply)
        for block in objects(content):
            self._add_block(block)
        self._end(reply)

    def _tokens(self) -> dict[str, int | None]:
        usage = self.usage
        names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        read, cached, written = (tokens(usage, name) for name in names)
        return {
            "input_tokens": None if read is None else read + (cached or 0) + (written or 0),
            "output_tokens": tokens(usage, "output_tokens"),
            "cached_tokens": cached,
        }

    def _add_usage(self, part: dict[str, Any]) -> None:
        """Let later numbers replace earlier ones, each by itself."""
        stated = object_in(part, "usage")
        self.usage |= {name: value for name, value in stated.items() if value is not None}

    def _add_block(self, block: dict[str, Any]) -> None:
        kind = block.get("type")
        if kind == "text" and not self.uses_tool:
            self.hear(self.text, block.get("text"))
        elif kind == "thinking":
            self.hear(self.reasoning, block.get("thinking"))
        elif kind == "tool_use":
            if not self.uses_tool:
                self.uses_tool = True
                self.text.clear()
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

    def _end(self, part: dict[str, Any]) -> None:
        reason = part.get("stop_reason")
        if reason == "pause_turn":
            raise broken_off(reason)
        if reason and isinstance(reason, str):
            self.finish_reason = reason


MESSAGES = Dialect("messages", _body, _MessageReply, _headers)
