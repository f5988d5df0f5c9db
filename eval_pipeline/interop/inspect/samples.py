"""One reply to one item as a sample of Inspect's, and in few words for the list of all."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from eval_pipeline.evaluation.item_prompt import Prompt
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item
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


NOT_ASKED = "It was not asked."
NOT_JUDGED = "It was not judged."
LONGEST_SHOWN = 500
FACTS = (
    *("outcome", "finish_reason", "first_token_s", "generation_s", "attempts", "generation_id"),
    *("served_by", "model_reported", "system_fingerprint", "request_hash", "carried_from"),
    *("cost_estimated", "prediction_id"),
)
VERDICT_FACTS = (
    *("judge", "judge_version", "graded_by", "outcome", "confidence", "failed_step"),
    *("tests_passed", "tests_total", "toolchain", "isolation", "backend", "grader_version"),
    *("input_tokens", "output_tokens", "cost_usd", "latency_s", "attempts", "raw_reply", "steps"),
)
_HARMLESS = re.compile(r"(?!\.\.?(/|$))[^\x00-\x1f\x7f\\/]+(/(?!\.\.?(/|$))[^\x00-\x1f\x7f\\/]+)*")
"""What can be part of a path in an archive without leading anywhere else."""

Names = Mapping[tuple[str, str], str]
"""What the scores of each version of each judge are called."""


@dataclass(frozen=True)
class Answered:
    """One reply to one item: what was asked, what came, and every verdict on it."""

    name: str
    item: Item
    prompt: Prompt
    sample: int
    prediction: Row | None
    verdicts: Sequence[Row]


def named(item_id: str) -> str:
    """The id as Inspect can have it: it becomes the name of a file in an archive."""
    if _HARMLESS.fullmatch(item_id):
        return item_id
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', item_id)[:60]}-{fingerprint(item_id)}"


def sample_of(one: Answered, names: Names) -> Document:
    """All that is known of it; what nobody could score has an error, and no score."""
    sent = asked(one.prompt.messages, one.item)
    found: Document = {
        "id": one.name,
        "epoch": one.sample + 1,
        "input": sent,
        "target": _target(one.item),
        "messages": sent,
        "output": {"model": "", "choices": []},
        "scores": dict(_scores(one.verdicts, names)),
        "metadata": dict(_metadata(one)),
    }
    if one.prediction is not None:
        message = reply(one.prediction)
        found["messages"] = [*sent, message] if message else sent
        found |= {"output": output(one.prediction), **_times(one.prediction)}
        used = usage(one.prediction)
        found["model_usage"] = {one.prediction["model"]: used} if used else {}
        found["uuid"] = fingerprint(one.prediction["prediction_id"])
    if not found["scores"]:
        found["error"] = error(_why_unscored(one))
    return found


def summary_of(sample: Document, question: str) -> Document:
    """What the list of samples shows of it; of a prompt, what differs from item to item."""
    scores = {name: _in_short(score) for name, score in sample["scores"].items()}
    kept = {
        name: sample[name]
        for name in ("id", "epoch", "model_usage", "uuid", *TIMES)
        if name in sample
    }
    return {
        **kept,
        "input": _shown(question),
        "target": _shown(sample["target"]),
        "scores": scores,
        "error": sample["error"]["message"] if "error" in sample else None,
        "metadata": {name: sample["metadata"][name] for name in ("suite", "category")},
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def error(message: str) -> Document:
    """An error as Inspect has it; there is no trace to show."""
    return {"message": message, "traceback": message, "traceback_ansi": message}


def moment(at: datetime) -> str:
    """A moment of the tables, which are in UTC."""
    return at.replace(tzinfo=UTC).isoformat()


TIMES = ("started_at", "completed_at", "total_time", "working_time")


def _times(prediction: Row) -> Document:
    ended, took = prediction["finished_at"], prediction["latency_s"]
    if took is None:
        return {"completed_at": moment(ended)}
    began = moment(ended - timedelta(seconds=took))
    return dict(zip(TIMES, (began, moment(ended), took, took), strict=True))


def _target(item: Item) -> str:
    """The reference answer; of a task its files, one after the other."""
    if isinstance(item, CodingTask):
        return "\n\n".join(f"{path}\n{text}" for path, text in item.answer.items())
    return item.answer


def _scores(verdicts: Sequence[Row], names: Names) -> Iterator[tuple[str, Document]]:
    for one in verdicts:
        if one["score"] is not None:
            yield (
                names[one["judge"], one["judge_version"]],
                {
                    "value": one["score"],
                    "answer": one["extracted_answer"],
                    "explanation": _explanation(one),
                    "metadata": dict(_told(one, VERDICT_FACTS)),
                },
            )


def _explanation(verdict: Row) -> str:
    """The judge's reason, and of code how each step went."""
    steps = [
        f"- {step['step']}: {step['status']}{': ' if step['reason'] else ''}{step['reason']}"
        for step in verdict["steps"]
    ]
    return "\n".join([verdict["reason"], *(["", *steps] if steps else [])])


def _metadata(one: Answered) -> Iterator[tuple[str, object]]:
    item, prediction = one.item, one.prediction
    about = item.model_dump(
        mode="json", include={"suite", "category", "kind", "raw_subject", "rationale", "toolchain"}
    )
    yield from _told(about, tuple(about))
    yield "item_id", item.id
    if one.prompt.missing:
        yield "prompt_missing_because", one.prompt.missing
    if prediction is None:
        return
    yield from _told(prediction, FACTS)
    if not one.prompt.missing:
        yield "prompt_is_exact", one.prompt.is_exact(one.sample, prediction["request_hash"])
    unscored = {judge["judge"]: judge["reason"] for judge in one.verdicts if judge["score"] is None}
    if unscored:
        yield "unscored_because", unscored


def _told(row: Row, names: Sequence[str]) -> Iterator[tuple[str, object]]:
    """What is said of these; nothing of those of which nothing is known."""
    return ((name, row[name]) for name in names if row[name] not in (None, "", []))


def _why_unscored(one: Answered) -> str:
    if one.prediction is None:
        return NOT_ASKED
    if not one.prediction["is_result"]:
        return trouble(one.prediction)
    reasons = [f"{judge['judge']}: {judge['reason']}" for judge in one.verdicts]
    return "; ".join(reasons) or NOT_JUDGED


def _in_short(score: Document) -> Document:
    short = {name: _shown(score[name] or "") or None for name in ("answer", "explanation")}
    return {"value": score["value"], **short}


def _shown(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
