"""Entries of predictions and judged files as our records, and a folder's numbers beside ours."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, NamedTuple

import duckdb
from pydantic_core import to_json

from eval_pipeline.gateways.dialects.errors import provider_error
from eval_pipeline.hashing import fingerprint
from eval_pipeline.interop.zenmux.read import (
    Entry,
    ResultsFolder,
    count_in,
    number_in,
    object_in,
    text_in,
)
from eval_pipeline.records.base import whole_characters
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import foreign_request
from eval_pipeline.results.queries import query
from eval_pipeline.results.stats.calibration import Published, as_published

SOURCE = "zenmux-benchmark"
PROMPT_HASH = fingerprint(SOURCE, "judge prompt")
"""A placeholder for its judge prompt, which is Humanity's Last Exam's own."""
JUDGE_VERSION = fingerprint(SOURCE, "judge")
UNKNOWN_JUDGE = "unknown/judge"
MOST_MS = 1e10
LONGEST_ERROR, LONGEST_NAME = 4_000, 200
_STATUS = re.compile(r"\b(?:error code|status code|HTTP)[:= ]{1,3}([45]\d\d)\b", re.IGNORECASE)
_OUTCOME_OF_TEXT = (
    (Outcome.CUT_STREAM, re.compile(r"peer closed connection|incomplete chunked read", re.I)),
    (Outcome.TIMEOUT, re.compile(r"time[d -]*out", re.I)),
    (Outcome.RATE_LIMITED, re.compile(r"rate.?limit|too many requests", re.I)),
    (Outcome.CONNECTION_ERROR, re.compile(r"connect|network|dns|socket|ssl", re.I)),
    (Outcome.INTERNAL_ERROR, re.compile(r"too many open files", re.I)),
    (Outcome.INVALID_REPLY, re.compile(r"json|parse|decode|validation error", re.I)),
)


def failure(error: str | None) -> Outcome:
    """Return the outcome that an error shows; it is never a result, so never a score of 0."""
    if error is None:
        return Outcome.EMPTY
    text = error[:LONGEST_ERROR]
    if found := _STATUS.search(text):
        status, body = int(found[1]), text.encode("utf-8", "replace")
        named = provider_error(status, body, retry_after=None, quote=str).outcome
        # It was a failure there, so that it has to be one here and be asked again.
        return Outcome.BAD_REQUEST if named.is_result else named
    found_in = (name for name, words in _OUTCOME_OF_TEXT if words.search(text))
    return next(found_in, Outcome.SERVER_ERROR)


@dataclass(frozen=True)
class Origin:
    """The run that the entries of a file belong to, and what else they have in common."""

    run_id: str
    model: str
    suite: str
    finished_at: datetime
    redact: Callable[[str], str]

    def clean(self, text: str | None) -> str | None:
        """Return the text without keys and halves of characters; None if it is empty."""
        return self.redact(whole_characters(text)) if text else None

    def fields(self, item_id: str) -> dict[str, Any]:
        """Return the fields that every record of an item has."""
        common = {name: value for name, value in vars(self).items() if name != "redact"}
        return {**common, "item_id": item_id}


def reply_of(entry: Entry) -> str:
    """Return the answer; an empty text if there is none."""
    return text_in(entry, "response") or ""


def prediction_of(entry: Entry, item_id: str, origin: Origin) -> Prediction:
    """Return the entry's prediction; the same entry has the same id every time."""
    reply, error = reply_of(entry), text_in(entry, "error")
    is_answered = bool(reply.strip())
    generation_id, usage = text_in(entry, "generation_id"), object_in(entry, "usage")
    parts = (item_id, reply, error or "", generation_id or "")
    name = to_json([origin.run_id, origin.model, *map(whole_characters, parts)])
    return Prediction(
        **origin.fields(item_id),
        prediction_id=blake2b(name, digest_size=16).hexdigest(),
        outcome=Outcome.OK if is_answered else failure(error),
        answer=origin.clean(reply) if is_answered else None,
        error=origin.clean(error and error[:LONGEST_ERROR]),
        usage=Usage(
            input_tokens=count_in(usage, "prompt_tokens"),
            output_tokens=count_in(usage, "completion_tokens"),
            reasoning_tokens=count_in(
                object_in(usage, "completion_tokens_details"), "reasoning_tokens"
            ),
            cached_tokens=count_in(object_in(usage, "prompt_tokens_details"), "cached_tokens"),
        ),
        **_times(object_in(entry, "performance")),
        attempts=1,
        generation_id=origin.clean(generation_id),
        served_by=origin.model.rpartition(":")[2] if ":" in origin.model else None,
        model_reported=origin.clean((text_in(entry, "model") or "")[:LONGEST_NAME]),
        request_hash=foreign_request(SOURCE, item_id),
    )


def judgement_of(
    entry: Entry, prediction: Prediction, origin: Origin, judge: str
) -> Judgement | None:
    """Return the entry's verdict on the prediction; None if it was not judged.

    As there, a verdict without reasoning is a failure to judge, whatever else it says.
    """
    said = entry.get("judge_response")
    if not isinstance(said, dict) or not prediction.outcome.is_result:
        return None
    reasoning, correct = text_in(said, "reasoning") or "", text_in(said, "correct") or ""
    error = text_in(said, "error")
    is_scored = bool(reasoning.strip() and correct)
    unscored = Outcome.JUDGE_UNPARSABLE if error is None else failure(error)
    reason = reasoning if is_scored else (error or "no verdict")[:LONGEST_ERROR]
    percentage = number_in(said, "confidence", 100) if is_scored else None
    rest = {
        "judge_generation_id": text_in(entry, "judge_generation_id"),
        "correct_answer": text_in(said, "correct_answer"),
    }
    rest_as_json = to_json({name: whole_characters(text) for name, text in rest.items() if text})
    return Judgement(
        **origin.fields(prediction.item_id),
        prediction_id=prediction.prediction_id,
        judge=judge,
        judge_version=JUDGE_VERSION,
        prompt_hash=PROMPT_HASH,
        outcome=Outcome.OK if is_scored else unscored,
        score=float("yes" in correct) if is_scored else None,
        reason=origin.redact(whole_characters(reason)),
        extracted_answer=origin.clean(text_in(said, "model_answer")),
        confidence=None if percentage is None else percentage / 100,
        graded_by=judge,
        reply_format="json_schema",
        raw_reply=origin.redact(rest_as_json.decode()),
        latency_s=_seconds(object_in(entry, "judge_performance"), "first_token_latency_ms"),
        attempts=1,
    )


def _times(said: Entry) -> dict[str, Any]:
    first = _seconds(said, "first_token_latency_ms")
    generation = number_in(said, "generation_time_ms", MOST_MS)
    if first is None or generation is None:
        return {"first_token_s": first}
    seconds = generation / 1000
    return {"first_token_s": first, "generation_s": seconds, "latency_s": first + seconds}


def _seconds(said: Entry, name: str) -> float | None:
    """Return the seconds; there, 0 is written for what never came."""
    return (number_in(said, name, MOST_MS) or 0) / 1000 or None


class Compared(NamedTuple):
    """A model's numbers in the folder's own summary and here."""

    model: str
    there: Published
    here: Published

    @property
    def same(self) -> bool:
        """True if they are equal to the second decimal, which is all that is stated."""
        return self.there == self.here


def compared(db: duckdb.DuckDBPyConnection, folder: ResultsFolder) -> Iterator[Compared]:
    """Yield every model that the folder's summary has numbers of."""
    given = {"run_id": folder.run_id, "judge_version": JUDGE_VERSION}
    found = query(db, "summaries/zenmux_published", given).fetchall()
    here = {model: as_published(*numbers) for model, *numbers in found}
    # A repair there names models after their files, and so some of them wrongly.
    by_file = {folder.answers_of(model): model for model in here}
    for named, result in folder.results.items():
        file = (text_in(result, "predictions_file") or "").rpartition("/")[2]
        model, metrics = by_file.get(file, named), object_in(result, "metrics")
        accuracy, interval, calibration = (
            number_in(metrics, name, 1e6) for name in Published._fields
        )
        ours = here.get(model)
        if ours and accuracy is not None and interval is not None and calibration is not None:
            yield Compared(model, Published(accuracy, interval, calibration), ours)
