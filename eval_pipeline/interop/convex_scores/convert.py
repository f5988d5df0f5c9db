"""Converting an eval of theirs to a prediction and a judgement of ours, its steps to ours."""

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from pydantic_core import to_json

from eval_pipeline.interop.convex_scores.read import EvalDocument, Status, StepDocument, Tokens
from eval_pipeline.interop.remote.messages import parsed
from eval_pipeline.records.coding import STEPS, CodingTask, GradedCode, Step, StepName
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run, foreign_request

SOURCE = "convex-evals"
"""The name of the judge that imported verdicts are of."""
JUDGE_VERSION = "1"
"""To be raised when the same export would be imported with other scores."""
NO_REPLY = "The reply itself is not part of the scores that were imported."
STEP_NAMES: dict[str, StepName] = {"tsc": "typecheck", "eslint": "lint"}
"""Our names of steps that have another name there."""
LONGEST_REASON, LONGEST_OUTPUT = 300, 20_000
MS = 1000
_OUTCOME_OF_FAILURE = (
    (r"\[rate_limit\]", Outcome.RATE_LIMITED),
    (r"\[infrastructure\].*empty", Outcome.EMPTY),
    (r"\[infrastructure\].*tim(ed |e-?)out", Outcome.TIMEOUT),
    (r"\[infrastructure\]", Outcome.SERVER_ERROR),
    (r"error:.*(rate.?limit|too many requests|quota|\b429\b|throttl)", Outcome.RATE_LIMITED),
    (r"error:.*(timeout|timed out)", Outcome.TIMEOUT),
    (
        r"error:.*(at capacity|high demand|unavailable|overloaded|connection reset|econn|"
        r"\b50[0234]\b)",
        Outcome.SERVER_ERROR,
    ),
)
"""Failures of the provider, by how their text begins; any other failure is the model's."""
_ENVIRONMENT_FAILED = re.compile(
    r"timed out after|econnrefused|econnreset|etimedout|enotfound|eai_again|too many requests|"
    r"status code 429|http 429|convex dev timed out",
    re.I,
)


class Converted(NamedTuple):
    """An eval in our records."""

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
    """Convert a finished eval; without a score if the run as a whole is `void` there.

    Records that the journal must not have raise a RefusedError: a line that DuckDB cannot read
    would damage all of it.
    """
    steps = steps_of(taken, redact)
    outcome, score, reason = _verdict(one.status, redact(one.status.reason), steps)
    if void:
        reason = f"The run failed there as a whole ({redact(void)}). This was: {reason}"
        outcome, score = Outcome.INTERNAL_ERROR, None
    used, generating, took = one.status.usage or Tokens(), one.status.generating, one.status.took
    ended = one.created + (generating or 0.0) + (took or 0.0)
    common = {
        "prediction_id": one.id,
        "run_id": run.run_id,
        "model": run.model,
        "suite": item.suite,
        "item_id": item.id,
        "outcome": outcome,
        "finished_at": moment(max([ended, *(step.created for step in taken)])),
    }
    prediction = {
        **common,
        "error": None if outcome.is_result else reason[:LONGEST_OUTPUT],
        "usage": {**used.model_dump(), "cost_estimated": used.cost_usd is None},
        "latency_s": None if generating is None else generating / MS,
        "attempts": 1,
        "request_hash": foreign_request(SOURCE, one.id),
    }
    judgement = {
        **common,
        "judge": SOURCE,
        "judge_version": JUDGE_VERSION,
        "score": score,
        "reason": f"{reason[:LONGEST_OUTPUT]} {NO_REPLY}",
        "graded_by": "steps",
        "code": GradedCode(
            steps=tuple(steps),
            toolchain=SOURCE,
            isolation="none",
            verdict="tamper_evident",
            backend="convex",
            grader_version=item.grader_version,
            answer_hash="unknown",
        ),
        "latency_s": None if took is None else took / MS,
    }
    return Converted(
        parsed(to_json(prediction), Prediction.model_validate),
        parsed(to_json(judgement), Judgement.model_validate),
    )


def _verdict(status: Status, said: str, steps: Sequence[Step]) -> tuple[Outcome, float | None, str]:
    for pattern, outcome in _OUTCOME_OF_FAILURE:
        if status.kind == "failed" and re.match(pattern, said, re.I | re.S):
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
    """Return the steps in our order and under our names; of one taken twice, the last counts."""
    last = {STEP_NAMES.get(one.name, one.name): one.status for one in taken}
    return [_step(name, last[name], redact) for name in STEPS if name in last]


def _step(name: StepName, status: Status, redact: Callable[[str], str]) -> Step:
    said, ended = redact(status.reason), str(status.kind)
    may_be_environment = ended == "failed" and name in ("install", "deploy", "typecheck")
    if ended not in ("passed", "failed", "skipped") or (
        may_be_environment and _ENVIRONMENT_FAILED.search(said)
    ):
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


def moment(ms: float) -> datetime:
    """Return the moment of a time of theirs, which is in milliseconds."""
    return datetime.fromtimestamp(ms / MS, UTC)
