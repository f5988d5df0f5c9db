"""OpenAI's responses API; nothing is to be stored on the server."""

from dataclasses import dataclass
from functools import partial
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

_ENDED = ("completed", "incomplete", "failed", "cancelled")
_LAST = {f"response.{status}" for status in (*_ENDED, "done")}
# Any other reason leaves open what the text is a part of.
_INCOMPLETE = {"max_output_tokens", "max_tokens", "length", "content_filter"}


def _body(request: ChatRequest) -> Body:
    instructions, messages = split_instructions(request)
    items: JsonValue = [
        with_parts(message, partial(_part, message.get("role"))) for message in messages
    ]
    body: Body = {"model": request.model, "input": items, "store": False}
    if instructions:
        body["instructions"] = instructions
    if request.json_schema is not None:
        body["text"] = {"format": {"type": "json_schema", **request.json_schema}}
    if tool := request.tool:
        function: Body = {"type": "function", "name": tool["name"]}
        body["tools"] = [{**function, "parameters": tool["schema"]}]
        body["tool_choice"] = function
    return completed(body, request, "max_output_tokens", {"type": "web_search"})


def _part(role: JsonValue, part: Body) -> JsonValue:
    if address := image_address(part):
        return {"type": "input_image", "image_url": address}
    kind = "output_text" if role == "assistant" else "input_text"
    return {"type": kind, "text": part.get("text")}


@dataclass(slots=True)
class _ResponseReply(ReplyBuilder):
    def add_event(self, event: dict[str, Any]) -> None:
        self.raise_error(event)
        match event.get("type"):
            case "response.output_text.delta":
                self.hear(self.text, event.get("delta"))
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self.hear(self.reasoning, event.get("delta"))
            case "response.refusal.delta":
                self.hear(self.refusal, event.get("delta"))
            case "response.function_call_arguments.delta":
                self.call(event.get("delta"))
            case kind:
                self._add_response(object_in(event, "response"), kind)

    def _add_whole(self, reply: dict[str, Any]) -> None:
        if not isinstance(reply.get("output"), list):
            raise no_reply("output")
        self._end(reply, reply.get("status"))
        if not self.finished:
            raise no_reply("end")

    def _tokens(self) -> dict[str, int | None]:
        usage = self.usage
        return {
            "input_tokens": tokens(usage, "input_tokens"),
            "output_tokens": tokens(usage, "output_tokens"),
            "reasoning_tokens": tokens(usage.get("output_tokens_details"), "reasoning_tokens"),
            "cached_tokens": tokens(usage.get("input_tokens_details"), "cached_tokens"),
        }

    def _add_response(self, response: dict[str, Any], kind: object) -> None:
        self.raise_error(response)
        if isinstance(kind, str) and kind in _LAST:
            status = response.get("status")
            self._end(response, status if status in _ENDED else kind.removeprefix("response."))
        else:
            self.note(response)

    def _end(self, response: dict[str, Any], status: object) -> None:
        self.note(response)
        self.usage = object_in(response, "usage") or self.usage
        if status in ("failed", "cancelled"):
            raise broken_off(str(status))
        if status == "incomplete":
            self.finish_reason = _why_incomplete(response)
        elif status in ("completed", "done"):
            self.finish_reason = "completed"
        self._read_output(response.get("output"))

    def _read_output(self, output: object) -> None:
        """Replace what was heard by the last event, which repeats the whole reply."""
        items = [*objects(output)]
        said = [item for item in items if item.get("type") == "message"]
        parts = [part for item in said for part in objects(item.get("content"))]
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


def _why_incomplete(response: dict[str, Any]) -> str:
    reason = object_in(response, "incomplete_details").get("reason")
    if isinstance(reason, str) and reason in _INCOMPLETE:
        return reason
    raise broken_off("incomplete")


def _thoughts(item: dict[str, Any]) -> list[object]:
    """Return what the model thought, or else the summary that the server gives instead."""
    if item.get("type") != "reasoning":
        return []
    parts = [*objects(item.get("content"))] or [*objects(item.get("summary"))]
    return [part.get("text") for part in parts]


RESPONSES = Dialect("responses", _body, _ResponseReply)
