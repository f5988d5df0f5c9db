"""OpenAI's responses API."""

from collections.abc import Iterator
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

_TEXT = "response.output_text.delta"
_REFUSAL = "response.refusal.delta"
_CALL = "response.function_call_arguments.delta"
_REASONING = {"response.reasoning_text.delta", "response.reasoning_summary_text.delta"}
_ENDED = ("completed", "incomplete", "failed", "cancelled")
_LAST = {f"response.{status}" for status in (*_ENDED, "done")}
_WEB_SEARCH: dict[str, JsonValue] = {"type": "web_search"}
# Any other reason leaves open what the text is a part of.
_INCOMPLETE = {"max_output_tokens", "max_tokens", "length", "content_filter"}


@dataclass(frozen=True)
class Responses:
    """Speaks the responses API; nothing is to be stored on the server."""

    path: str = "responses"

    def headers(self, key: str | None) -> dict[str, str]:
        """What authorises a request."""
        return {} if key is None else {"authorization": f"Bearer {key}"}

    def body(self, request: ChatRequest) -> dict[str, JsonValue]:
        """The request as it is sent, with only what was asked for."""
        said = apart(request)
        items: list[JsonValue] = [_item(message) for message in said.messages]
        body: dict[str, JsonValue] = {"model": request.model, "input": items, "store": False}
        if said.instructions:
            body["instructions"] = said.instructions
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body["max_output_tokens"] = request.max_tokens
        if request.json_schema is not None:
            body["text"] = {"format": {"type": "json_schema", **request.json_schema}}
        if request.tool is not None:
            body |= _tool(request.tool)
        if request.web_search:
            body = with_tool(body, _WEB_SEARCH)
        if request.stream:
            body["stream"] = True
        return merged(body, request.extra)

    def collect(self, started: float, quote: Quote) -> Collected:
        """An empty reply to be filled."""
        return _ResponseCollected(started, quote)


@dataclass(slots=True)
class _ResponseCollected(Collected):
    def add_event(self, event: dict[str, Any]) -> None:
        kind, error = event.get("type"), event.get("error")
        if kind == "error" or error:
            raise reply_error(error or event, self.quote)
        if kind == _TEXT:
            self.hear(self.text, event.get("delta"))
        elif isinstance(kind, str) and kind in _REASONING:
            self.hear(self.reasoning, event.get("delta"))
        elif kind == _REFUSAL:
            self.hear(self.refusal, event.get("delta"))
        elif kind == _CALL:
            self.call(event.get("delta"))
        else:
            response = event.get("response")
            self._add_response(response if isinstance(response, dict) else {}, kind)

    def add_whole(self, reply: dict[str, Any]) -> None:
        if error := reply.get("error"):
            raise reply_error(error, self.quote)
        if not isinstance(reply.get("output"), list):
            raise no_reply("output")
        self._end(reply, reply.get("status"))
        self.first_token = None  # it came as a whole
        if not self.finished:
            raise no_reply("end")

    def used(self) -> Usage:
        usage, cost = self.usage, dollars(self.usage)
        return Usage(
            input_tokens=tokens(usage, "input_tokens"),
            output_tokens=tokens(usage, "output_tokens"),
            reasoning_tokens=tokens(usage.get("output_tokens_details"), "reasoning_tokens"),
            cached_tokens=tokens(usage.get("input_tokens_details"), "cached_tokens"),
            cost_usd=cost,
            cost_estimated=cost is None,
        )

    def _add_response(self, response: dict[str, Any], kind: object) -> None:
        if error := response.get("error"):
            raise reply_error(error, self.quote)
        if isinstance(kind, str) and kind in _LAST:
            status = response.get("status")
            self._end(response, status if status in _ENDED else kind.removeprefix("response."))
        else:
            self.note(response)

    def _end(self, response: dict[str, Any], status: object) -> None:
        self.note(response)
        if isinstance(usage := response.get("usage"), dict):
            self.usage = usage
        if status in ("failed", "cancelled"):
            raise broken_off(str(status))
        if status == "incomplete":
            self.finish_reason = _why_incomplete(response)
        elif status in ("completed", "done"):
            self.finish_reason = "completed"
        self._read_output(response.get("output"))

    def _read_output(self, output: object) -> None:
        """The last event repeats the whole reply: what it says stands, and not twice."""
        items = list(_objects(output))
        parts = [part for item in items for part in _said_parts(item)]
        self._replace(self.text, [part.get("text") for part in parts])
        self._replace(self.refusal, [part.get("refusal") for part in parts])
        self._replace(self.reasoning, [thought for item in items for thought in _thoughts(item)])
        calls = [item.get("arguments") for item in items if item.get("type") == "function_call"]
        if calls:
            self.calls.clear()
        for arguments in calls:
            self.call(arguments)

    def _replace(self, target: list[str], said: list[object]) -> None:
        if any(isinstance(words, str) and words for words in said):
            target.clear()
        for words in said:
            self.hear(target, words)


def _item(message: dict[str, JsonValue]) -> JsonValue:
    content = message.get("content")
    if isinstance(content, list):
        content = [_part(part, message.get("role")) for part in content]
    return {"role": message.get("role"), "content": content}


def _part(part: JsonValue, role: JsonValue) -> JsonValue:
    if not isinstance(part, dict):
        return part
    if address := image_address(part):
        return {"type": "input_image", "image_url": address}
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": kind, "text": part.get("text")}


def _tool(tool: dict[str, JsonValue]) -> dict[str, JsonValue]:
    name = tool.get("name") or "reply"
    function: JsonValue = {"type": "function", "name": name, "parameters": tool.get("schema")}
    return {"tools": [function], "tool_choice": {"type": "function", "name": name}}


def _why_incomplete(response: dict[str, Any]) -> str:
    details = response.get("incomplete_details")
    reason = details.get("reason") if isinstance(details, dict) else None
    if isinstance(reason, str) and reason in _INCOMPLETE:
        return reason
    raise broken_off("incomplete")


def _said_parts(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    return _objects(item.get("content") if item.get("type") == "message" else None)


def _thoughts(item: dict[str, Any]) -> list[object]:
    """What the model thought, or else the summary of it that the server gives instead."""
    if item.get("type") != "reasoning":
        return []
    return [
        part.get("text")
        for part in [*_objects(item.get("content"))] or [*_objects(item.get("summary"))]
    ]


def _objects(value: object) -> Iterator[dict[str, Any]]:
    yield from (part for part in value if isinstance(part, dict)) if isinstance(value, list) else ()
