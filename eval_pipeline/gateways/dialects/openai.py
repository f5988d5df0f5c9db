"""OpenAI's chat completions, which most gateways and local servers speak too, and its responses."""

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
    texts,
    tokens,
    with_parts,
)
from eval_pipeline.gateways.dialects.errors import broken_off, no_reply

_REASONING = dict.fromkeys(("reasoning_content", "reasoning", "reasoning_details")).keys()
# Reasons for ending that servers give when they failed half way, so that the text is a part only.
_FAILED = {"abort", "cancelled", "error", "insufficient_system_resource", "network_error"}


def _chat_body(request: ChatRequest) -> Body:
    body: Body = {"model": request.model, "messages": list(request.messages)}
    if request.json_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": request.json_schema}
    if tool := request.tool:
        function: JsonValue = {"name": tool["name"], "parameters": tool["schema"]}
        body["tools"] = [{"type": "function", "function": function}]
        body["tool_choice"] = {"type": "function", "function": {"name": tool["name"]}}
    if request.web_search:
        # For OpenAI's search models, OpenRouter and ZenMux; the size is named so that it stays.
        body["web_search_options"] = {"search_context_size": "medium"}
    if request.stream:
        body["stream_options"] = {"include_usage": True}
    return completed(body, request, "max_tokens")


@dataclass(slots=True)
class _ChatReply(ReplyBuilder):
    def add_event(self, event: dict[str, Any]) -> None:
        self._add(event, "delta")

    def _add_whole(self, reply: dict[str, Any]) -> None:
        self._add(reply, "message")
        choice = _first_choice(reply)
        if choice is None or not isinstance(choice.get("message"), dict):
            raise no_reply("message")

    def _tokens(self) -> dict[str, int | None]:
        usage = self.usage
        asked, said = tokens(usage, "prompt_tokens"), tokens(usage, "completion_tokens")
        thought = tokens(usage.get("completion_tokens_details"), "reasoning_tokens")
        if thought and asked is not None and said is not None:
            # Some servers count the reasoning apart: their total shows it.
            together = asked + said + thought
            said += thought if tokens(usage, "total_tokens") == together else 0
        return {
            "input_tokens": asked,
            "output_tokens": said,
            "reasoning_tokens": thought,
            "cached_tokens": tokens(usage.get("prompt_tokens_details"), "cached_tokens"),
        }

    def _add(self, part: dict[str, Any], name: str) -> None:
        # Most events hold a few words and nothing else: what is not there must cost nothing.
        self.raise_error(part)
        self.note(part)
        if (usage := part.get("usage")) and isinstance(usage, dict):
            self.usage = usage
        if (choice := _first_choice(part)) is None:
            return
        if (message := choice.get(name)) and isinstance(message, dict):
            self._add_message(message)
        self.raise_error(choice)
        if isinstance(reason := choice.get("finish_reason"), str) and reason:
            if reason in _FAILED:
                raise broken_off(reason)
            self.finish_reason = reason

    def _add_message(self, message: dict[str, Any]) -> None:
        if not _REASONING.isdisjoint(message):
            said = (_text(message.get(name)) for name in _REASONING)
            self.hear(self.reasoning, next(filter(None, said), ""))
        if content := message.get("content"):
            self.hear(self.text, _text(content))
        if refusal := message.get("refusal"):
            self.hear(self.refusal, _text(refusal))
        for call in objects(message.get("tool_calls")):
            if isinstance(function := call.get("function"), dict):
                self.call(function.get("arguments"))


def _text(content: object) -> str:
    return content if isinstance(content, str) else "".join(texts(content))


def _first_choice(part: dict[str, Any]) -> dict[str, Any] | None:
    choices = part.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


CHAT_COMPLETIONS = Dialect("chat/completions", _chat_body, _ChatReply)

_ENDED = ("completed", "incomplete", "failed", "cancelled")
_LAST = {f"response.{status}" for status in (*_ENDED, "done")}
# Any other reason leaves open what the text is a part of.
_INCOMPLETE = {"max_output_tokens", "max_tokens", "length", "content_filter"}


def _response_body(request: ChatRequest) -> Body:
    instructions, messages = split_instructions(request)
    items: JsonValue = [
        with_parts(message, partial(_response_part, message.get("role"))) for message in messages
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


def _response_part(role: JsonValue, part: Body) -> JsonValue:
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


RESPONSES = Dialect("responses", _response_body, _ResponseReply)
