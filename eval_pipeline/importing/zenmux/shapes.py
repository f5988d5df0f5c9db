"""Our records in the shapes of zenmux-benchmark's files: what `entries` reads, written."""

import json
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from eval_pipeline.importing.zenmux.files import Entry
from eval_pipeline.outcomes import Outcome

Row = Mapping[str, Any]
NO_REASON = "No reason was given."
ALL_SURE = 100
"""What stands there for a confidence that was not stated."""


def answer_entry(row: Row, model: str) -> Entry:
    """A reply; where its text does not tell how it ended, `outcome` does, which is ours."""
    outcome, answer = Outcome(row["outcome"]), row["answer"] or ""
    failed = not outcome.is_result
    entry: Entry = {
        "model": row["model_reported"] or model,
        "response": "" if failed else answer,
        "usage": _usage(row),
        "performance": _performance(row),
        "generation_id": row["generation_id"],
    }
    if failed and row["error"]:
        entry["error"] = row["error"]
    if outcome is not (Outcome.EMPTY if failed and not row["error"] else Outcome.OK):
        entry["outcome"] = outcome.value
    return entry


def judged_entry(entry: Entry, row: Row) -> Entry:
    """The same with its verdict, if there is one."""
    if row["judge"] is None:
        return entry
    said, reference = _rest(row["raw_reply"]), row["reference"]
    response: Entry = {
        "correct_answer": said.get("correct_answer", reference),
        "model_answer": row["extracted_answer"] or "",
        **_verdict(row),
    }
    seconds = row["judge_latency_s"] or 0.0
    performance = {"first_token_latency_ms": _ms(seconds), "generation_time_ms": 0.0}
    performance["throughput_tokens_per_second"] = 0.0
    return {
        **entry,
        "judge_response": response,
        "judge_performance": performance,
        "judge_generation_id": said.get("judge_generation_id"),
    }


def stamp(moment: datetime | None) -> str | None:
    """A moment as it stands there, without its zone."""
    return None if moment is None else moment.replace(tzinfo=None).isoformat()


def _verdict(row: Row) -> Entry:
    if row["score"] is None:
        failed = {"reasoning": "", "correct": "no", "confidence": 0, "error": row["reason"]}
        return {**failed, "outcome": row["judge_outcome"]}
    sure = {"confidence": _percentage(row["confidence"])}
    if row["confidence"] is None:
        sure = {"confidence": ALL_SURE, "confidence_stated": False}
    correct = "yes" if row["score"] == 1 else "no"
    return {"reasoning": row["reason"].strip() or NO_REASON, "correct": correct, **sure}


def _percentage(share: float | None) -> float | None:
    if share is None:
        return None
    rounded = round(100 * share, 6)
    return int(rounded) if rounded == int(rounded) else rounded


def _usage(row: Row) -> Entry:
    read, written = row["input_tokens"], row["output_tokens"]
    if read is None and written is None:
        return {}
    return {
        "completion_tokens": written,
        "prompt_tokens": read,
        "total_tokens": (read or 0) + (written or 0),
        "completion_tokens_details": {"reasoning_tokens": row["reasoning_tokens"]},
        "prompt_tokens_details": {"cached_tokens": row["cached_tokens"]},
    }


def _performance(row: Row) -> Entry:
    seconds, tokens = row["generation_s"] or 0.0, row["output_tokens"] or 0
    return {
        "first_token_latency_ms": _ms(row["first_token_s"] or 0.0),
        "generation_time_ms": _ms(seconds),
        "throughput_tokens_per_second": tokens / seconds if seconds else 0.0,
    }


def _ms(seconds: float) -> float:
    """Milliseconds as they were before they became seconds."""
    return round(seconds * 1000, 9)


def _rest(raw: str | None) -> Mapping[str, str]:
    """What was imported without a column for it."""
    with suppress(ValueError, TypeError, RecursionError):
        found = json.loads(raw or "")
        if isinstance(found, dict) and found.keys() <= {"judge_generation_id", "correct_answer"}:
            return found
    return {}
