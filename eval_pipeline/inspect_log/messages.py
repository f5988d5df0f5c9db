"""Chat messages and replies in the words of Inspect's logs."""

from collections.abc import Mapping, Sequence
from typing import Any

from eval_pipeline.records import Item
from eval_pipeline.results.runs import Row

Document = dict[str, Any]
STOPPED = {
    "ok": "stop",
    "truncated": "max_tokens",
    "truncated_thinking": "max_tokens",
    "refused": "content_filter",
    "content_filter": "content_filter",
}
"""How a reply ended, as Inspect calls it; whatever is not here is unknown to it."""


def asked(messages: Sequence[Mapping[str, Any]], item: Item) -> list[Document]:
    """What was sent; where nobody can tell any more, the question alone."""
    if not messages:
        return [{"role": "user", "content": _question(item)}]
    return [{"role": one["role"], "content": _content(one["content"])} for one in messages]


def _question(item: Item) -> str | list[Document]:
    if item.image is None:
        return item.question
    return [{"type": "text", "text": item.question}, {"type": "image", "image": item.image}]


def _content(content: Any) -> str | list[Document]:
    if isinstance(content, str):
        return content
    return [_part(part) for part in content]


def _part(part: Mapping[str, Any]) -> Document:
    match part:
        case {"type": "image_url", "image_url": {"url": str(uri)}}:
            return {"type": "image", "image": uri}
    return {"type": "text", "text": str(part.get("text", ""))}


def reply(prediction: Row) -> Document | None:
    """The model's message, with its reasoning before it; None if it said nothing."""
    answer, reasoning = prediction["answer"], prediction["reasoning"]
    if answer is None and not reasoning:
        return None
    said: str | list[Document] = answer or ""
    if reasoning:
        thought = {"type": "reasoning", "reasoning": reasoning}
        said = [thought, {"type": "text", "text": answer or ""}]
    about = {"role": "assistant", "source": "generate", "model": prediction["model"]}
    return {**about, "content": said}


def output(prediction: Row) -> Document:
    """What came of asking: the message and what it used, or the error."""
    found: Document = {"model": prediction["model_reported"] or prediction["model"]}
    message = reply(prediction)
    if message is not None:
        stopped = STOPPED.get(prediction["outcome"], "unknown")
        found["choices"] = [{"message": message, "stop_reason": stopped}]
        found["completion"] = prediction["answer"] or ""
    if used := usage(prediction):
        found["usage"] = used
    if prediction["latency_s"] is not None:
        found["time"] = prediction["latency_s"]
    if not prediction["is_result"]:
        found["error"] = trouble(prediction)
    return found


def trouble(prediction: Row) -> str:
    """Why there is no answer."""
    return f"{prediction['outcome']}: {prediction['error'] or 'no answer'}"


def usage(used: Row) -> Document | None:
    """Tokens and cost; what came from a cache is apart there. None if nobody said anything."""
    tokens = [used[name] for name in ("input_tokens", "output_tokens")]
    if tokens == [None, None]:
        return None
    sent, written = (one or 0 for one in tokens)
    cached = min(used["cached_tokens"] or 0, sent)
    told = {
        "input_tokens_cache_read": used["cached_tokens"] and cached,
        "reasoning_tokens": used["reasoning_tokens"],
        "total_cost": used["cost_usd"],
    }
    counted = {
        "input_tokens": sent - cached,
        "output_tokens": written,
        "total_tokens": sent + written,
    }
    return counted | {name: one for name, one in told.items() if one is not None}
