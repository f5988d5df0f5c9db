"""Replies and errors of the simulated gateway, as each of its dialects writes them."""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from json.encoder import encode_basestring_ascii
from typing import NamedTuple

from pydantic import JsonValue

from eval_pipeline.gateways.demo.faults import FaultKind
from eval_pipeline.gateways.demo.replies import tokens
from eval_pipeline.gateways.demo.requests import MessagesRequest, Request, ResponsesRequest

Object = dict[str, JsonValue]

_FEW_WORDS = re.compile(r"\s*(?:\S+\s*){1,4}|\s+")


@dataclass(frozen=True)
class Reply(ABC):
    """A model's words, whole and as a stream, both spoiled if the fault is in the text."""

    request: Request
    said: str
    number: int
    created: int
    fault: FaultKind | None
    cost_usd: float | None

    def whole(self) -> bytes:
        """Return the body of a reply that is not streamed."""
        body = json.dumps(self._whole()).encode()
        return body[: len(body) // 2] if self.fault is FaultKind.INVALID_JSON else body

    def events(self) -> list[bytes]:
        """Return the events of a stream, up to where it is cut."""
        events = [*map(_event, self._opening()), *self._words()]
        if self.fault is FaultKind.CUT_STREAM:
            events = events[: len(events) // 2 + 1]
        else:
            if self.fault is FaultKind.INVALID_JSON:
                events[-1] = events[-1][: len(events[-1]) // 2] + "\n\n"
            events += map(_event, self._closing())
        return [event.encode() for event in events]

    @abstractmethod
    def _whole(self) -> Object: ...

    @abstractmethod
    def _opening(self) -> list[Object]: ...

    @abstractmethod
    def _delta(self, words: str) -> Object: ...

    @abstractmethod
    def _closing(self) -> list[Object | None]: ...

    def _words(self) -> list[str]:
        """Return one event for each few words, formatted once: JSON was most of the cost."""
        start, _, end = _event(self._delta("@words@")).rpartition('"@words@"')
        words = map(encode_basestring_ascii, _FEW_WORDS.findall(self._text))
        return [f"{start}{few}{end}" for few in words]

    @cached_property
    def _text(self) -> str:
        limit = self.request.max_tokens
        return self.said if limit is None else self.said[: 4 * limit]

    @property
    def _is_truncated(self) -> bool:
        return len(self._text) < len(self.said)

    @property
    def _id(self) -> str:
        return f"{self.request.content_hash}-{self.number}"


def _event(data: Object | None) -> str:
    """Return a server-sent event, which has its type as a name, too."""
    if data is None:
        return "data: [DONE]\n\n"
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"


class _ChatReply(Reply):
    def _whole(self) -> Object:
        message: JsonValue = {"role": "assistant", "content": self._text}
        if self.request.tool is not None:
            message = {"role": "assistant", "content": None, **self._said(self._text)}
        choice: JsonValue = {"index": 0, "message": message, "finish_reason": self._reason}
        return self._about("chat.completion", choices=[choice], usage=self._usage())

    def _opening(self) -> list[Object]:
        role: Object = {"role": "assistant"} if self.request.tool is None else {}
        return [self._chunk({**role, **self._said("")})]

    def _delta(self, words: str) -> Object:
        return self._chunk(self._said(words))

    def _closing(self) -> list[Object | None]:
        events: list[Object | None] = [self._chunk({}, self._reason)]
        if (self.request.stream_options or {}).get("include_usage"):
            events.append(self._about("chat.completion.chunk", choices=[], usage=self._usage()))
        return [*events, None]

    def _chunk(self, delta: Object, reason: str | None = None) -> Object:
        choice: JsonValue = {"index": 0, "delta": delta, "finish_reason": reason}
        return self._about("chat.completion.chunk", choices=[choice])

    def _about(self, kind: str, **rest: JsonValue) -> Object:
        return {
            "id": f"chatcmpl-{self._id}",
            "created": self.created,
            "model": self.request.model,
            "provider": "Simulated",
            "system_fingerprint": "fp_simulated",
            "object": kind,
            **rest,
        }

    def _said(self, words: str) -> Object:
        if self.request.tool is None:
            return {"content": words}
        function: JsonValue = {"name": self.request.tool, "arguments": words}
        about: Object = {"index": 0, "id": f"call_{self._id}", "type": "function"}
        return {"tool_calls": [{**about, "function": function}]}

    def _usage(self) -> JsonValue:
        prompt, completion = self.request.prompt_tokens, tokens(self._text)
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
            **({} if self.cost_usd is None else {"cost": self.cost_usd}),
        }

    @property
    def _reason(self) -> str:
        return "length" if self._is_truncated else "stop"


class _ResponsesReply(Reply):
    def _whole(self) -> Object:
        reason: JsonValue = {"reason": "max_output_tokens"} if self._is_truncated else None
        read, written = self.request.prompt_tokens, tokens(self._text)
        usage: JsonValue = {
            "input_tokens": read,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": written,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": read + written,
        }
        output: JsonValue = [self._output()]
        return self._response(self._status, incomplete_details=reason, output=output, usage=usage)

    def _opening(self) -> list[Object]:
        return [{"type": "response.created", "response": self._response("in_progress")}]

    def _delta(self, words: str) -> Object:
        place: Object = {"item_id": f"item_{self._id}", "output_index": 0, "content_index": 0}
        return {"type": f"response.{self._kind}.delta", **place, "delta": words}

    def _closing(self) -> list[Object | None]:
        name = "text" if self.request.tool is None else "arguments"
        return [
            {"type": f"response.{self._kind}.done", name: self._text},
            {"type": f"response.{self._status}", "response": self._whole()},
        ]

    def _response(self, status: str, **rest: JsonValue) -> Object:
        return {
            "id": f"resp_{self._id}",
            "object": "response",
            "created_at": self.created,
            "model": self.request.model,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "output": [],
            "usage": None,
            **rest,
        }

    def _output(self) -> JsonValue:
        if self.request.tool is None:
            return {
                "type": "message",
                "id": f"item_{self._id}",
                "role": "assistant",
                "status": self._status,
                "content": [{"type": "output_text", "text": self._text, "annotations": []}],
            }
        return {
            "type": "function_call",
            "id": f"item_{self._id}",
            "call_id": f"call_{self._id}",
            "name": self.request.tool,
            "arguments": self._text,
            "status": self._status,
        }

    @property
    def _status(self) -> str:
        return "incomplete" if self._is_truncated else "completed"

    @property
    def _kind(self) -> str:
        return "output_text" if self.request.tool is None else "function_call_arguments"


class _MessagesReply(Reply):
    """A reply of the messages API; if a tool has to be used, JSON becomes its input."""

    def _whole(self) -> Object:
        block = self._block(self._text if self._tool_input is None else self._tool_input)
        return self._message([block], self._reason, tokens(self._text))

    def _opening(self) -> list[Object]:
        block = self._block("" if self._tool_input is None else {})
        return [
            {"type": "message_start", "message": self._message([], None, 1)},
            {"type": "content_block_start", "index": 0, "content_block": block},
        ]

    def _delta(self, words: str) -> Object:
        delta: JsonValue = {"type": "text_delta", "text": words}
        if self._tool_input is not None:
            delta = {"type": "input_json_delta", "partial_json": words}
        return {"type": "content_block_delta", "index": 0, "delta": delta}

    def _closing(self) -> list[Object | None]:
        delta: JsonValue = {"stop_reason": self._reason, "stop_sequence": None}
        usage: JsonValue = {"output_tokens": tokens(self._text)}
        return [
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": delta, "usage": usage},
            {"type": "message_stop"},
        ]

    def _message(self, content: list[JsonValue], reason: str | None, written: int) -> Object:
        return {
            "id": f"msg_{self._id}",
            "type": "message",
            "role": "assistant",
            "model": self.request.model,
            "content": content,
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": {
                "input_tokens": self.request.prompt_tokens,
                "cache_creation_input_tokens": 0,
                "cache_read_input_tokens": 0,
                "output_tokens": written,
            },
        }

    def _block(self, said: JsonValue) -> JsonValue:
        if self._tool_input is None:
            return {"type": "text", "text": said}
        tool = self.request.tool
        return {"type": "tool_use", "id": f"toolu_{self._id}", "name": tool, "input": said}

    @cached_property
    def _tool_input(self) -> Object | None:
        """The tool's input; text that is no JSON object, or a part of one, is said in words."""
        if self.request.tool is None:
            return None
        try:
            given = json.loads(self._text)
        except ValueError:
            return None
        return given if isinstance(given, dict) else None

    @property
    def _reason(self) -> str:
        if self._is_truncated:
            return "max_tokens"
        return "end_turn" if self._tool_input is None else "tool_use"


class Dialect(NamedTuple):
    """One way to read requests and to write replies."""

    request: type[Request]
    reply: type[Reply]


MESSAGES = "/v1/messages"
DIALECTS: Mapping[str, Dialect] = {
    "/v1/chat/completions": Dialect(Request, _ChatReply),
    "/v1/responses": Dialect(ResponsesRequest, _ResponsesReply),
    MESSAGES: Dialect(MessagesRequest, _MessagesReply),
}

_CODES = {
    401: "invalid_api_key",
    402: "insufficient_credits",
    404: "model_not_found",
    413: "request_too_large",
    429: "rate_limit_exceeded",
}
_TYPES = {
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_body(
    path: str, status: int, message: str, param: str | None = None, code: str | None = None
) -> Object:
    """Return an error as the dialect of that path writes it."""
    is_ours = status >= 500  # noqa: PLR2004
    if path == MESSAGES:
        kind = _TYPES.get(status, "api_error" if is_ours else "invalid_request_error")
        return {"type": "error", "error": {"type": kind, "message": message}}
    general = "server_error" if is_ours else "invalid_request_error"
    code = code or (_CODES.get(status, general) if param is None else "unsupported_value")
    return {"error": {"message": message, "type": general, "param": param, "code": code}}
