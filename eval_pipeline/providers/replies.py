"""What a server of the OpenAI chat dialect says: a reply as its parts arrive, and errors."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.providers.chat import ChatReply, ProviderError
from eval_pipeline.records import Outcome, Usage, whole_characters

DEAREST_REPLY = 1e6
MOST_TOKENS = 2**40


@dataclass
class Collected:
    """The parts of a reply as they arrive."""

    started: float
    text: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    refusal: list[str] = field(default_factory=list)
    head: dict[str, Any] = field(default_factory=dict)
    usage: dict[str, Any] = field(default_factory=dict)
    finish_reason: str | None = None
    first_token: float | None = None

    @property
    def finished(self) -> bool:
        """A stream has ended well only if the server said why it ended."""
        return self.finish_reason is not None

    def add_chunk(self, chunk: dict[str, Any]) -> None:
        self._add(chunk, "delta")

    def add_whole(self, reply: dict[str, Any]) -> None:
        self._add(reply, "message")
        self.first_token = None  # it came as a whole
        if not isinstance(reply.get("choices"), list) or not reply["choices"]:
            raise ProviderError(Outcome.INVALID_REPLY, "The reply has no choices.", transient=True)

    def _add(self, part: dict[str, Any], name: str) -> None:
        for about in ("id", "model", "provider"):
            if about not in self.head and part.get(about):
                self.head[about] = part[about]
        if isinstance(part.get("usage"), dict):
            self.usage = part["usage"]
        choices = part.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            return
        message = choices[0].get(name)
        if isinstance(message, dict):
            self._add_message(message)
        if isinstance(choices[0].get("finish_reason"), str):
            self.finish_reason = choices[0]["finish_reason"]
        if choices[0].get("error") or self.finish_reason == "error":
            raise ProviderError(
                Outcome.SERVER_ERROR, "The server ended the reply with an error.", transient=True
            )

    def _add_message(self, message: dict[str, Any]) -> None:
        for target, names in (
            (self.text, ("content",)),
            (self.reasoning, ("reasoning_content", "reasoning")),
            (self.refusal, ("refusal",)),
        ):
            if said := next(filter(None, (_text(message.get(name)) for name in names)), ""):
                target.append(said)
                self.first_token = self.first_token or time.monotonic()

    def reply(self, redact: Callable[[str], str]) -> ChatReply:
        def text(value: object) -> str | None:
            return redact(whole_characters(value)) if isinstance(value, str) and value else None

        return ChatReply(
            text=text("".join(self.text)) or "",
            reasoning=text("".join(self.reasoning)),
            refusal=text("".join(self.refusal)),
            finish_reason=text(self.finish_reason),
            usage=_usage(self.usage),
            generation_id=text(self.head.get("id")),
            served_by=text(self.head.get("provider")),
            model_reported=text(self.head.get("model")),
            latency_s=time.monotonic() - self.started,
            first_token_s=self.first_token - self.started if self.first_token else None,
        )


def _usage(usage: dict[str, Any]) -> Usage:
    def number(source: object, name: str) -> int | None:
        value = source.get(name) if isinstance(source, dict) else None
        if not isinstance(value, int) or isinstance(value, bool):
            return None
        return value if 0 <= value < MOST_TOKENS else None

    cost = usage.get("cost")
    known = (
        isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < DEAREST_REPLY
    )
    return Usage(
        input_tokens=number(usage, "prompt_tokens"),
        output_tokens=number(usage, "completion_tokens"),
        reasoning_tokens=number(usage.get("completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=number(usage.get("prompt_tokens_details"), "cached_tokens"),
        cost_usd=float(cost) if known and cost is not None else None,
        cost_estimated=not known,
    )


def parsed_json(data: bytes) -> object:
    """The JSON value, or None for anything that is none."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _text(content: object) -> str:
    """A message's text, which some servers give as a list of parts."""
    if isinstance(content, list):
        parts = (part.get("text") for part in content if isinstance(part, dict))
        return "".join(part for part in parts if isinstance(part, str))
    return content if isinstance(content, str) else ""


def error_status(error: object) -> int:
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500  # noqa: PLR2004


def error_message(body: bytes) -> tuple[str, str | None]:
    """The server's own words, and its error code if it gives one in words."""
    parsed = parsed_json(body)
    # Without the escapes of JSON, behind which a key would not be recognized.
    readable = json.dumps(parsed, ensure_ascii=False) if parsed is not None else None
    text, code = readable or body.decode("utf-8", "replace"), None
    error = parsed.get("error") if isinstance(parsed, dict) else None
    if isinstance(error, dict):
        code = error.get("code") if isinstance(error.get("code"), str) else error.get("type")
        message = error.get("message")
        text = message if isinstance(message, str) and message else text
    elif isinstance(error, str):
        text = error
    return text, code if isinstance(code, str) else None
