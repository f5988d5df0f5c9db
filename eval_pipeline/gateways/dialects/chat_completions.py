"""OpenAI's chat completions, which most gateways and local servers speak too."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.dialects.base import Collected, dollars, merged, tokens
from eval_pipeline.gateways.dialects.errors import Quote, broken_off, no_reply, reply_error
from eval_pipeline.records.prediction import Usage

_REASONING = dict.fromkeys(("reasoning_content", "reasoning", "reasoning_details")).keys()
# What OpenAI's search models, OpenRouter and ZenMux take; a size is named so that it stays.
_WEB_SEARCH: dict[str, JsonValue] = {"search_context_size": "medium"}
# Reasons for ending that servers give when they failed half way, so that the text is a part only.
_FAILED = {"abort", "cancelled", "error", "insufficient_system_resource", "network_error"}


@dataclass(frozen=True)
class ChatCompletions:
    """Speaks chat completions."""

    path: str = "chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        """What authorises a request."""
        return {} if key is None else {"authorization": f"Bearer {key}"}

    def body(self, request: ChatRequest) -> dict[str, JsonValue]:
        """The request as it is sent, with only what was asked for."""
        body: dict[str, JsonValue] = {"model": request.model, "messages": list(request.messages)}
        if request.temperature is not None:
            body["temperature"] = request.temperature
        if request.max_tokens is not None:
            body["max_tokens"] = request.max_tokens
        if request.json_schema is not None:
            body["response_format"] = {"type": "json_schema", "json_schema": request.json_schema}
        if request.tool is not None:
            body |= _tool(request.tool)
        if request.web_search:
            body["web_search_options"] = dict(_WEB_SEARCH)
        if request.stream:
            body |= {"stream": True, "stream_options": {"include_usage": True}}
        return merged(body, request.extra) if request.extra else body

    def collect(self, started: float, quote: Quote) -> Collected:
        """An empty reply to be filled."""
        return _ChatCollected(started, quote)


@dataclass(slots=True)
class _ChatCollected(Collected):
    def add_event(self, event: dict[str, Any]) -> None:
        self._add(event, "delta")

    def add_whole(self, reply: dict[str, Any]) -> None:
        self._add(reply, "message")
        self.first_token = None  # it came as a whole
        choice = _first_choice(reply)
        if choice is None or not isinstance(choice.get("message"), dict):
            raise no_reply("message")

    def used(self) -> Usage:
        usage, cost = self.usage, dollars(self.usage)
        asked, said = tokens(usage, "prompt_tokens"), tokens(usage, "completion_tokens")
        thought = tokens(usage.get("completion_tokens_details"), "reasoning_tokens")
        if thought and asked is not None and said is not None:
            # Some servers count the reasoning apart: their total tells.
            together = asked + said + thought
            said += thought if tokens(usage, "total_tokens") == together else 0
        return Usage(
            input_tokens=asked,
            output_tokens=said,
            reasoning_tokens=thought,
            cached_tokens=tokens(usage.get("prompt_tokens_details"), "cached_tokens"),
            cost_usd=cost,
            cost_estimated=cost is None,
        )

    def _add(self, part: dict[str, Any], name: str) -> None:
        # Most events hold a few words and nothing else: what is not there must cost nothing.
        if error := part.get("error"):
            raise reply_error(error, self.quote)
        self.note(part)
        if (usage := part.get("usage")) and isinstance(usage, dict):
            self.usage = usage
        if (choice := _first_choice(part)) is None:
            return
        if (message := choice.get(name)) and isinstance(message, dict):
            self._add_message(message)
        if error := choice.get("error"):
            raise reply_error(error, self.quote)
        if reason := choice.get("finish_reason"):
            self._end(reason)

    def _add_message(self, message: dict[str, Any]) -> None:
        if not _REASONING.isdisjoint(message):
            self.hear(self.reasoning, _reasoning(message))
        if content := message.get("content"):
            self.hear(self.text, _text(content))
        if refusal := message.get("refusal"):
            self.hear(self.refusal, _text(refusal))
        if calls := message.get("tool_calls"):
            self._add_calls(calls)

    def _add_calls(self, calls: object) -> None:
        for call in calls if isinstance(calls, list) else ():
            function = call.get("function") if isinstance(call, dict) else None
            if isinstance(function, dict):
                self.call(function.get("arguments"))

    def _end(self, reason: object) -> None:
        if not isinstance(reason, str):
            return
        if reason in _FAILED:
            raise broken_off(reason)
        self.finish_reason = reason


def _tool(tool: dict[str, JsonValue]) -> dict[str, JsonValue]:
    name = tool.get("name") or "reply"
    function: JsonValue = {"name": name, "parameters": tool.get("schema")}
    choice: JsonValue = {"type": "function", "function": {"name": name}}
    return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}


def _first_choice(part: dict[str, Any]) -> dict[str, Any] | None:
    choices = part.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else None


def _text(content: object) -> str:
    """A text, which some servers give as a list of parts."""
    return content if isinstance(content, str) else "".join(_parts(content))


def _reasoning(message: dict[str, Any]) -> str:
    """Told under one of several names, and by some under more than one."""
    for name in _REASONING:
        if (said := message.get(name)) and (text := _text(said)):
            return text
    return ""


def _parts(content: object) -> Iterator[str]:
    for part in content if isinstance(content, list) else ():
        said = (part.get("text") or part.get("summary")) if isinstance(part, dict) else None
        if isinstance(said, str):
            yield said
