"""One entry of a predictions or judged file, as a prediction and a judgement of ours."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any

from pydantic_core import to_json

from eval_pipeline.gateways.dialects.errors import provider_error
from eval_pipeline.hashing import fingerprint
from eval_pipeline.interop.zenmux.files import Entry, count_in, number_in, object_in, text_in
from eval_pipeline.records.base import whole_characters
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import foreign_request

_STATUS = re.compile(r"\b(?:error code|status code|HTTP)[:= ]{1,3}([45]\d\d)\b", re.IGNORECASE)
_BY_WORDS = (
    (Outcome.CUT_STREAM, re.compile(r"peer closed connection|incomplete chunked read", re.I)),
    (Outcome.TIMEOUT, re.compile(r"time[d -]*out", re.I)),
    (Outcome.RATE_LIMITED, re.compile(r"rate.?limit|too many requests", re.I)),
    (Outcome.CONNECTION_ERROR, re.compile(r"connect|network|dns|socket|ssl", re.I)),
    (Outcome.INTERNAL_ERROR, re.compile(r"too many open files", re.I)),
    (Outcome.INVALID_REPLY, re.compile(r"json|parse|decode|validation error", re.I)),
)
_SEARCHED = 4_000
"""Characters of an error: far more than say what it is."""


def failure(error: str | None) -> Outcome:
    """The name of a failure; none of them says anything about the model, so none is ever a 0."""
    if error is None:
        return Outcome.EMPTY
    text = error[:_SEARCHED]
    if found := _STATUS.search(text):
        status, body = int(found[1]), text.encode("utf-8", "replace")
        named = provider_error(status, body, retry_after=None, quote=str).outcome
        # There it was a failure: it is to be asked again, and then named by what is said here.
        return Outcome.BAD_REQUEST if named.is_result else named
    return next((name for name, words in _BY_WORDS if words.search(text)), Outcome.SERVER_ERROR)


SOURCE = "zenmux-benchmark"
PROMPT_HASH = fingerprint(SOURCE, "judge prompt")
"""Stands for its judge prompt, which is Humanity's Last Exam's own and none of ours."""
JUDGE_VERSION = fingerprint(SOURCE, "judge")
UNKNOWN_JUDGE = "unknown/judge"
"""Whoever judged where nothing says who did."""
MOST_MS = 1e10
_OUTCOMES = frozenset(Outcome)
LONGEST_ERROR, LONGEST_NAME = 4_000, 200


@dataclass(frozen=True)
class Origin:
    """Which run the entries of a file belong to, and what is the same for all of them."""

    run_id: str
    model: str
    suite: str
    finished_at: datetime
    redact: Callable[[str], str] = str

    def clean(self, text: str) -> str:
        """A text fit to be kept."""
        return self.redact(whole_characters(text))


def reply_of(entry: Entry) -> str:
    """The answer, empty if there is none."""
    return text_in(entry, "response") or ""


def is_answered(entry: Entry) -> bool:
    """As that project has it: whether there is anything but space."""
    return bool(reply_of(entry).strip())


def prediction_of(entry: Entry, item_id: str, origin: Origin) -> Prediction:
    """The prediction that an entry is of; the same entry has the same id every time."""
    answered, error = is_answered(entry), text_in(entry, "error")
    outcome = _declared(entry) or (Outcome.OK if answered else failure(error))
    generation_id = text_in(entry, "generation_id")
    return Prediction(
        prediction_id=_name(origin, item_id, reply_of(entry), error or "", generation_id or ""),
        run_id=origin.run_id,
        model=origin.model,
        suite=origin.suite,
        item_id=item_id,
        outcome=outcome,
        answer=origin.clean(reply_of(entry)) if answered else None,
        error=origin.clean(error[:LONGEST_ERROR]) if error else None,
        usage=_usage(object_in(entry, "usage")),
        **_times(object_in(entry, "performance")),
        attempts=1,
        generation_id=origin.clean(generation_id) if generation_id else None,
        served_by=_provider(origin.model),
        model_reported=origin.clean((text_in(entry, "model") or "")[:LONGEST_NAME]) or None,
        request_hash=foreign_request(SOURCE, item_id),
        finished_at=origin.finished_at,
    )


def judgement_of(
    entry: Entry, prediction: Prediction, origin: Origin, judge: str
) -> Judgement | None:
    """The verdict that an entry has on this prediction; None if nobody judged it.

    As there, a verdict without reasoning is a failure to judge, whatever else it says.
    """
    said = entry.get("judge_response")
    if not isinstance(said, dict) or not prediction.outcome.is_result:
        return None
    reasoning, correct = text_in(said, "reasoning") or "", text_in(said, "correct") or ""
    scored, error = bool(reasoning.strip() and correct), text_in(said, "error")
    stated = said.get("confidence_stated") is not False
    percentage = number_in(said, "confidence", 100) if stated else None
    return Judgement(
        prediction_id=prediction.prediction_id,
        run_id=origin.run_id,
        model=origin.model,
        suite=origin.suite,
        item_id=prediction.item_id,
        judge=judge,
        judge_version=JUDGE_VERSION,
        prompt_hash=PROMPT_HASH,
        outcome=Outcome.OK if scored else _declared(said) or _judge_failure(error),
        score=float("yes" in correct) if scored else None,
        reason=origin.clean(reasoning if scored else (error or "no verdict")[:LONGEST_ERROR]),
        extracted_answer=origin.clean(text_in(said, "model_answer") or "") or None,
        confidence=percentage / 100 if scored and percentage is not None else None,
        graded_by=judge,
        reply_format="json_schema",
        raw_reply=_rest(entry, said, origin),
        latency_s=_seconds(object_in(entry, "judge_performance"), "first_token_latency_ms"),
        attempts=1,
        finished_at=origin.finished_at,
    )


def _name(origin: Origin, *parts: str) -> str:
    text = to_json([origin.run_id, origin.model, *map(whole_characters, parts)])
    return blake2b(text, digest_size=16).hexdigest()


def _usage(said: Entry) -> Usage:
    return Usage(
        input_tokens=count_in(said, "prompt_tokens"),
        output_tokens=count_in(said, "completion_tokens"),
        reasoning_tokens=count_in(object_in(said, "completion_tokens_details"), "reasoning_tokens"),
        cached_tokens=count_in(object_in(said, "prompt_tokens_details"), "cached_tokens"),
    )


def _times(said: Entry) -> dict[str, Any]:
    first = _seconds(said, "first_token_latency_ms")
    generation = number_in(said, "generation_time_ms", MOST_MS)
    if first is None or generation is None:
        return {"first_token_s": first}
    seconds = generation / 1000
    return {"first_token_s": first, "generation_s": seconds, "latency_s": first + seconds}


def _seconds(said: Entry, name: str) -> float | None:
    """Of what never came, 0 is noted there."""
    return (number_in(said, name, MOST_MS) or 0) / 1000 or None


def _provider(model: str) -> str | None:
    return model.rpartition(":")[2] if ":" in model else None


def _declared(said: Entry) -> Outcome | None:
    """How it ended where an export of ours says so; that there is an answer, its text shows."""
    name = said.get("outcome")
    known = isinstance(name, str) and name in _OUTCOMES and name != Outcome.OK
    return Outcome(str(name)) if known else None


def _judge_failure(error: str | None) -> Outcome:
    return Outcome.JUDGE_UNPARSABLE if error is None else failure(error)


def _rest(entry: Entry, said: Entry, origin: Origin) -> str:
    """What there is no column for, as JSON."""
    rest = {
        "judge_generation_id": text_in(entry, "judge_generation_id"),
        "correct_answer": text_in(said, "correct_answer"),
    }
    kept = {name: whole_characters(text) for name, text in rest.items() if text}
    return origin.redact(to_json(kept).decode())
