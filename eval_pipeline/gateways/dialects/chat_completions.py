"""OpenAI's chat completions, which most gateways and local servers speak too."""

from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.dialects.base import (
    Body,
    Dialect,
    ReplyBuilder,
    completed,
    objects,
    texts,
    tokens,
)
from eval_pipeline.gateways.dialects.errors import broken_off, no_reply

_REASONING = dict.fromkeys(("reasoning_content", "reasoning", "reasoning_details")).keys()
# Reasons for ending that servers give when they failed half way, so that the text is a part only.
_FAILED = {"abort", "cancelled", "error", "insufficient_system_resource", "network_error"}


def _body(request: ChatRequest) -> Body:
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


CHAT_COMPLETIONS = Dialect("chat/completions", _body, _ChatReply)
