"""What the bodies of all dialects share: the texts of messages, and settings merged in."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatRequest

_INSTRUCTING = ("system", "developer")


class Said(NamedTuple):
    """The instructions, and the messages that are left without them."""

    instructions: str
    messages: list[dict[str, JsonValue]]


def apart(request: ChatRequest) -> Said:
    """Instructions apart from the messages, for dialects that give them a place of their own."""
    told = [said for said in request.messages if said.get("role") in _INSTRUCTING]
    rest = [said for said in request.messages if said.get("role") not in _INSTRUCTING]
    texts = [text for said in told for text in _texts(said.get("content"))]
    return Said("\n\n".join(texts), rest)


def image_address(part: Mapping[str, JsonValue]) -> str | None:
    """Where the image of a message's part is, usually a data URI; None if it is no image."""
    image = part.get("image_url") if part.get("type") == "image_url" else None
    address = image.get("url") if isinstance(image, dict) else image
    return address if isinstance(address, str) else None


def merged(body: dict[str, JsonValue], extra: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The body with `extra` in it; where both have an object, the two are merged."""
    both = dict(body)
    for name, value in extra.items():
        known = body.get(name)
        if isinstance(known, dict) and isinstance(value, dict):
            both[name] = merged(known, value)
        else:
            both[name] = value
    return both


def with_tool(body: dict[str, JsonValue], tool: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """The body with one more tool that the model may use."""
    tools = body.get("tools")
    return {**body, "tools": [*(tools if isinstance(tools, list) else ()), dict(tool)]}


def _texts(content: JsonValue) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    for part in content if isinstance(content, list) else ():
        text = part.get("text") if isinstance(part, dict) else None
        if isinstance(text, str):
            yield text
