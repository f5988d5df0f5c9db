"""The ways to write a request and to read its reply, and the names that settings give them."""

from collections.abc import Mapping
from typing import Protocol

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.dialects.chat_completions import ChatCompletions
from eval_pipeline.gateways.dialects.collected import Collected
from eval_pipeline.gateways.dialects.errors import Quote
from eval_pipeline.gateways.dialects.messages import Messages
from eval_pipeline.gateways.dialects.responses import Responses
from eval_pipeline.records import DialectName

__all__ = ["DIALECTS", "Collected", "Dialect", "DialectName"]


class Dialect(Protocol):
    """One way to write a request and to read its reply."""

    @property
    def path(self) -> str:
        """Where requests go, below the gateway's address."""
        ...

    def headers(self, key: str | None) -> dict[str, str]:
        """What authorises a request, and whatever else every request has to carry."""
        ...

    def body(self, request: ChatRequest) -> dict[str, JsonValue]:
        """The request as it is sent; its `extra` is merged in last."""
        ...

    def collect(self, started: float, quote: Quote) -> Collected:
        """An empty reply; `started` is monotonic time, `quote` is for errors inside of a reply."""
        ...


DIALECTS: Mapping[DialectName, Dialect] = {
    "chat_completions": ChatCompletions(),
    "responses": Responses(),
    "messages": Messages(),
}
