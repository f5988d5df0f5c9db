"""An eval of theirs as a prediction and a verdict of ours, its steps as ours."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from eval_pipeline.interop.convex_scores.documents import EvalDocument, Status, StepDocument, Tokens
from eval_pipeline.records.coding import STEPS, CodingTask, GradedCode, Step, StepName
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run, foreign_request

SOURCE = "convex-evals"
"""As whose verdicts they stand."""
JUDGE_VERSION = "1"
"""Raised when the same export would be taken in with other scores."""
NO_REPLY = "The reply itself is not part of the scores that were imported."
NAMES: dict[str, StepName] = {"tsc": "typecheck", "eslint": "lint"}
"""Steps that are called otherwise here."""
LONGEST_REASON, LONGEST_OUTPUT = 300, 20_000
MS = 1000
_TROUBLES = (
    (re.compile(r"^\[rate_limit\]", re.I), Outcome.RATE_LIMITED),
    (re.compile(r"^\[infrastructure\].*empty", re.I | re.S), Outcome.EMPTY),
    (re.compile(r"^\[infrastructure\].*tim(ed |e-?)out", re.I | re.S), Outcome.TIMEOUT),
    (re.compile(r"^\[infrastructure\]", re.I), Outcome.SERVER_ERROR),
    (
        re.compile(r"^error:.*(rate.?limit|too many requests|quota|\b429\b|throttl)", re.I | re.S),
        Outcome.RATE_LIMITED,
    ),
    (re.compile(r"^error:.*(timeout|timed out)", re.I | re.S), Outcome.TIMEOUT),
    (
        re.compile(
            r"^error:.*(at capacity|high demand|unavailable|overloaded|connection reset|econn|"
            r"\b50[0234]\b)",
            re.I | re.S,
        ),
        Outcome.SERVER_ERROR,
    ),
)
"""How they say that nobody answered; what is not said so is the model's own failing."""
_ENVIRONMENT = re.compile(
    r"timed out after|econnrefused|econnreset|etimedout|enotfound|eai_again|too many requests|"
    r"status code 429|http 429|convex dev timed out",
    re.I,
)
_OF_MACHINES = ("install", "deploy", "typecheck")
"""Steps that fail for reasons of their own where the words say so."""


ENDED = ("passed", "failed", "skipped")


class Converted(NamedTuple):
    """What an eval comes to."""

    prediction: Prediction
    judgement: Judgement


def convert(
    run: Run,
    item: CodingTask,
    one: EvalDocument,
    taken: Sequence[StepDocument],
    *,
    void: str = "",
    redact: Callable[[str], str] = str,
) -> Converted:
    """A finished eval; where the run as a whole is `void` there, it has no score here either."""
    steps = steps_of(taken, redact)
    said = redact(one.status.reason)
    outcome, score, reason = _verdict(one.status, said, steps)
    if void:
        outcome, score = Outcome.INTERNAL_ERROR, None
        reason = f"The run failed there as a whole ({redact(void)}). This was: {reason}"
    about: dict[str, object] = {"prediction_id": one.id, "run_id": run.run_id, "model": run.model}
    about |= {"suite": item.suite, "item_id": item.id, "outcome": outcome}
    about |= {"finished_at": _finished(one, taken)}
    generating = one.status.generating
    prediction = {
        **about,
        "error": None if outcome.is_result else reason[:LONGEST_OUTPUT],
        "usage": _usage(one.status.usage),
        "latency_s": None if generating is None else generating / MS,
        "attempts": 1,
        "request_hash": foreign_request(SOURCE, one.id),
    }
    verdict = {
        **about,
        "judge": SOURCE,
        "judge_version": JUDGE_VERSION,
        "score": score,
        "reason": f"{reason[:LONGEST_OUTPUT]} {NO_REPLY}",
        "graded_by": "steps",
        "code": _graded(item, steps),
        "latency_s": None if one.status.took is None else one.status.took / MS,
    }
    return Converted(Prediction.model_validate(prediction), Judgement.model_validate(verdict))


def _verdict(status: Status, said: str, steps: Sequence[Step]) -> tuple[Outcome, float | None, str]:
    for pattern, outcome in _TROUBLES:
        if status.kind == "failed" and pattern.search(said):
            return outcome, None, said
    broken = next((step for step in steps if step.status == "error"), None)
    if broken is not None:
        return Outcome.SANDBOX_ERROR, None, f"{broken.name}: {broken.reason}"
    failed = [step.name for step in steps if step.status == "failed"]
    if status.kind == "passed":
        if failed:
            reason = f"It is said to have passed, and {failed[0]} to have failed."
            return Outcome.INTERNAL_ERROR, None, reason
        return Outcome.OK, 1.0, "Every step was perfect."
    return Outcome.OK, 0.0, said or "It failed."


def steps_of(taken: Sequence[StepDocument], redact: Callable[[str], str] = str) -> list[Step]:
    """In our order and under our names; of one that was taken twice the last counts."""
    last = {NAMES.get(one.name, one.name): one.status for one in taken}
    return [_step(name, last[name], redact) for name in STEPS if name in last]


def _step(name: StepName, status: Status, redact: Callable[[str], str]) -> Step:
    said, ended = redact(status.reason), str(status.kind)
    of_machine = name in _OF_MACHINES and _ENVIRONMENT.search(said) is not None
    if ended not in ENDED or (ended == "failed" and of_machine):
        said, ended = said or "It had not ended.", "error"
    lines = said.strip().splitlines() or [""]
    return Step.model_validate(
        {
            "name": name,
            "status": ended,
            "reason": lines[0][:LONGEST_REASON],
            "output": said[:LONGEST_OUTPUT] if len(lines) > 1 else "",
            "seconds": (status.took or 0.0) / MS,
        }
    )


def _graded(item: CodingTask, steps: Sequence[Step]) -> GradedCode:
    return GradedCode(
        steps=tuple(steps),
        toolchain=SOURCE,
        isolation="none",
        verdict="tamper_evident",
        backend="convex",
        grader_version=item.grader_version,
        answer_hash="unknown",
    )


def _usage(used: Tokens | None) -> Usage:
    if used is None:
        return Usage()
    tokens = {
        "input_tokens": used.sent,
        "output_tokens": used.written,
        "reasoning_tokens": used.thought,
        "cached_tokens": used.cached,
    }
    counted = {name: None if one is None else round(one) for name, one in tokens.items()}
    return Usage.model_validate(
        {**counted, "cost_usd": used.usd, "cost_estimated": used.usd is None}
    )


def moment(ms: float) -> datetime:
    """Theirs are milliseconds."""
    return datetime.fromtimestamp(ms / MS, UTC)


def _finished(one: EvalDocument, taken: Sequence[StepDocument]) -> datetime:
    """When it was begun, and all that was told to have taken time."""
    took = (one.status.generating or 0.0) + (one.status.took or 0.0)
    return moment(max([one.created + took, *(step.created for step in taken)]))
