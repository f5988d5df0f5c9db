"""Runs in Inspect's format: the header of a log, samples, and the list of samples."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from eval_pipeline.evaluation.item_prompt import Prompt
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item
from eval_pipeline.results.runs import Row

Document = dict[str, Any]
LOG_VERSION = 2
SHORT = 8
LONGEST_SHOWN = 500
STOP_REASONS = {
    "ok": "stop",
    "truncated": "max_tokens",
    "truncated_thinking": "max_tokens",
    "refused": "content_filter",
    "content_filter": "content_filter",
}
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
TIMES = ("started_at", "completed_at", "total_time", "working_time")
_SAFE_PATH = re.compile(r"(?!\.\.?(/|$))[^\x00-\x1f\x7f\\/]+(/(?!\.\.?(/|$))[^\x00-\x1f\x7f\\/]+)*")


@dataclass(frozen=True)
class Facts:
    """The rows of a run: itself, what it used, and its numbers by each judge."""

    run: Row
    used: Row
    gradings: Sequence[Row]
    suites: Sequence[str]
    sample_ids: Sequence[str]

    def score_name(self, row: Row) -> str:
        """Return the judge's name, with its version if it judged under several."""
        judge: str = row["judge"]
        several = sum(one["judge"] == judge for one in self.gradings) > 1
        return f"{judge}@{row['judge_version'][:SHORT]}" if several else judge


@dataclass(frozen=True)
class Answered:
    """One sample of an item: what was asked, the reply, and every verdict on it."""

    name: str
    item: Item
    prompt: Prompt
    sample: int
    prediction: Row | None
    verdicts: Sequence[Row]


def sample_id(item_id: str) -> str:
    """Return the id as Inspect can have it: it becomes the name of a file in an archive."""
    if _SAFE_PATH.fullmatch(item_id):
        return item_id
    return f"{re.sub(r'[^A-Za-z0-9_-]+', '-', item_id)[:60]}-{fingerprint(item_id)}"


def header_of(facts: Facts) -> Document:
    """Return all of the log but its samples."""
    run, first, used = facts.run, facts.gradings[0], facts.used
    config = {name: run["parameters"].get(name) for name in ("temperature", "max_tokens")}
    config = _without(config, None)
    solver = {"solver": "eval_pipeline", "params": {"experiment": run["experiment"]}}
    found = {
        "version": LOG_VERSION,
        "status": _status(first),
        "eval": _spec(facts, config),
        "plan": {"name": "plan", "steps": [solver], "config": config},
        "results": {
            "total_samples": first["planned"],
            "completed_samples": max(one["judged"] for one in facts.gradings),
            "scores": [_score(one, facts) for one in facts.gradings if one["judge"] is not None],
        },
        "stats": {
            "started_at": "" if used["began_at"] is None else _moment(used["began_at"]),
            "completed_at": "" if used["ended_at"] is None else _moment(used["ended_at"]),
            "model_usage": {} if used["began_at"] is None else {run["model"]: usage(used)},
        },
    }
    if not first["judged"]:
        found["error"] = _error(first["incomplete_because"] or "Nothing was judged.")
    return found


def _status(grading: Row) -> str:
    """Inspect shows numbers of what succeeded only, and beside them how many have none."""
    if not grading["judged"]:
        return "error"
    asked = grading["answered"] + grading["failed"]
    return "success" if asked == grading["planned"] else "cancelled"


def _spec(facts: Facts, config: Document) -> Document:
    run, task = facts.run, "+".join(facts.suites)
    metrics = [{"name": "inspect_ai/accuracy"}, {"name": "inspect_ai/stderr"}]
    return {
        "eval_id": fingerprint(run["run_id"], run["model"]),
        "run_id": run["run_id"],
        "created": _moment(run["opened_at"]),
        "task": task,
        "task_id": fingerprint(run["benchmark_version"], run["experiment"], run["model"]),
        "task_version": run["benchmark_version"],
        "task_args": {"experiment": run["experiment"], "scope": run["scope"]},
        "dataset": {
            "name": task,
            "samples": len(facts.sample_ids),
            "sample_ids": facts.sample_ids,
            "shuffled": False,
        },
        "model": run["model"],
        "model_generate_config": config,
        "config": {"epochs": run["samples"], "epochs_reducer": ["mean"]},
        "packages": {"eval_pipeline": version("eval_pipeline")},
        "metadata": _picked(run, ("experiment", "scope", "simulated", "parameters")),
        "scorers": [
            {
                "name": facts.score_name(one),
                "options": _picked(one, ("judge", "judge_version")),
                "metrics": metrics,
            }
            for one in facts.gradings
            if one["judge"] is not None
        ],
    }


def _score(grading: Row, facts: Facts) -> Document:
    """Return the numbers of our own tables; none is computed again."""
    name = facts.score_name(grading)
    metrics = {"accuracy": grading["accuracy"], "stderr": grading["standard_error"]}
    more = ("judge_version", "accuracy_low", "accuracy_high", "coverage", "incomplete_because")
    return {
        "name": name,
        "scorer": name,
        "reducer": "mean",
        "scored_samples": grading["judged"],
        "unscored_samples": grading["planned"] - grading["judged"],
        "params": {},
        "metrics": {
            metric: {"name": metric, "value": value, "params": {}}
            for metric, value in _without(metrics, None).items()
        },
        "metadata": _without(_picked(grading, more), None),
    }


def sample_of(one: Answered, facts: Facts) -> Document:
    """Return all that is known of a sample; one without a score has an error."""
    sent, prediction = _messages(one), one.prediction
    found: Document = {
        "id": one.name,
        "epoch": one.sample + 1,
        "input": sent,
        "target": _target(one.item),
        "messages": sent,
        "output": {"model": "", "choices": []},
        "scores": {
            facts.score_name(verdict): {
                "value": verdict["score"],
                "answer": verdict["extracted_answer"],
                "explanation": _explanation(verdict),
                "metadata": _without(_picked(verdict, VERDICT_FACTS), None, "", []),
            }
            for verdict in one.verdicts
            if verdict["score"] is not None
        },
        "metadata": dict(_metadata(one)),
    }
    if prediction is not None:
        message, used = _reply(prediction), usage(prediction)
        found["messages"] = [*sent, message] if message else sent
        found |= {"output": _output(prediction, message, used), **_times(prediction)}
        found["model_usage"] = {prediction["model"]: used} if used else {}
        found["uuid"] = fingerprint(prediction["prediction_id"])
    if not found["scores"]:
        found["error"] = _error(_why_unscored(one))
    return found


def summary_of(sample: Document, question: str) -> Document:
    """Return the sample's entry in the list of samples, with the question instead of the prompt."""
    shown = ("id", "epoch", "model_usage", "uuid", *TIMES)
    return {
        **_picked(sample, [name for name in shown if name in sample]),
        "input": _shortened(question),
        "target": _shortened(sample["target"]),
        "scores": {
            name: {
                "value": score["value"],
                "answer": _shortened(score["answer"] or "") or None,
                "explanation": _shortened(score["explanation"]) or None,
            }
            for name, score in sample["scores"].items()
        },
        "error": sample["error"]["message"] if "error" in sample else None,
        "metadata": _picked(sample["metadata"], ("suite", "category")),
        "completed": True,
        "message_count": len(sample["messages"]),
    }


def usage(used: Row) -> Document | None:
    """Return tokens and cost, those from a cache apart; None if they are unknown."""
    if used["input_tokens"] is None and used["output_tokens"] is None:
        return None
    sent, written = used["input_tokens"] or 0, used["output_tokens"] or 0
    cached = min(used["cached_tokens"] or 0, sent)
    known = {
        "input_tokens_cache_read": used["cached_tokens"] and cached,
        "reasoning_tokens": used["reasoning_tokens"],
        "total_cost": used["cost_usd"],
    }
    return {
        "input_tokens": sent - cached,
        "output_tokens": written,
        "total_tokens": sent + written,
        **_without(known, None),
    }


def _messages(one: Answered) -> list[Document]:
    """Return what was sent; the question alone if the prompt cannot be made again."""
    item = one.item
    messages: Iterable[Mapping[str, Any]] = one.prompt.messages
    if not messages:
        content: Any = item.question
        if item.image is not None:
            content = [_text(item.question), {"type": "image", "image": item.image}]
        return [{"role": "user", "content": content}]
    return [{"role": one["role"], "content": _content(one["content"])} for one in messages]


def _content(content: Any) -> str | list[Document]:
    if isinstance(content, str):
        return content
    return [
        {"type": "image", "image": part["image_url"]["url"]}
        if part["type"] == "image_url"
        else _text(part["text"])
        for part in content
    ]


def _text(text: str) -> Document:
    return {"type": "text", "text": text}


def _reply(prediction: Row) -> Document | None:
    """Return the model's message, with its reasoning before it; None if it said nothing."""
    answer, reasoning = prediction["answer"], prediction["reasoning"]
    if answer is None and not reasoning:
        return None
    content: Any = answer or ""
    if reasoning:
        content = [{"type": "reasoning", "reasoning": reasoning}, _text(content)]
    about = {"role": "assistant", "source": "generate", "model": prediction["model"]}
    return {**about, "content": content}


def _output(prediction: Row, message: Document | None, used: Document | None) -> Document:
    found: Document = {"model": prediction["model_reported"] or prediction["model"]}
    if message is not None:
        stop_reason = STOP_REASONS.get(prediction["outcome"], "unknown")
        found["choices"] = [{"message": message, "stop_reason": stop_reason}]
        found["completion"] = prediction["answer"] or ""
    if used:
        found["usage"] = used
    if prediction["latency_s"] is not None:
        found["time"] = prediction["latency_s"]
    if not prediction["is_result"]:
        found["error"] = _trouble(prediction)
    return found


def _trouble(prediction: Row) -> str:
    return f"{prediction['outcome']}: {prediction['error'] or 'no answer'}"


def _error(message: str) -> Document:
    """Return an error in Inspect's form; there is no trace to show."""
    return {"message": message, "traceback": message, "traceback_ansi": message}


def _moment(at: datetime) -> str:
    """Return a moment of the tables, which are in UTC."""
    return at.replace(tzinfo=UTC).isoformat()


def _times(prediction: Row) -> Document:
    ended, took = prediction["finished_at"], prediction["latency_s"]
    if took is None:
        return {"completed_at": _moment(ended)}
    began = _moment(ended - timedelta(seconds=took))
    return dict(zip(TIMES, (began, _moment(ended), took, took), strict=True))


def _target(item: Item) -> str:
    """Return the reference answer; for a task its files, one after the other."""
    if isinstance(item, CodingTask):
        return "\n\n".join(f"{path}\n{text}" for path, text in item.answer.items())
    return item.answer


def _explanation(verdict: Row) -> str:
    """Return the judge's reason, and for code how each step went."""
    steps = [
        f"- {step['step']}: {step['status']}{': ' if step['reason'] else ''}{step['reason']}"
        for step in verdict["steps"]
    ]
    return "\n".join([verdict["reason"], *(["", *steps] if steps else [])])


def _metadata(one: Answered) -> Iterator[tuple[str, object]]:
    item, prediction = one.item, one.prediction
    about = {"suite", "category", "kind", "raw_subject", "rationale", "toolchain"}
    yield from _without(item.model_dump(mode="json", include=about), None, "", []).items()
    yield "item_id", item.id
    if one.prompt.missing:
        yield "prompt_missing_because", one.prompt.missing
    if prediction is None:
        return
    yield from _without(_picked(prediction, FACTS), None, "", []).items()
    if not one.prompt.missing:
        yield "prompt_is_exact", one.prompt.is_exact(one.sample, prediction["request_hash"])
    unscored = {each["judge"]: each["reason"] for each in one.verdicts if each["score"] is None}
    if unscored:
        yield "unscored_because", unscored


def _picked(row: Mapping[str, Any], names: Iterable[str]) -> Document:
    return {name: row[name] for name in names}


def _without(values: Document, *unknown: object) -> Document:
    return {name: value for name, value in values.items() if value not in unknown}


def _why_unscored(one: Answered) -> str:
    if one.prediction is None:
        return "It was not asked."
    if not one.prediction["is_result"]:
        return _trouble(one.prediction)
    reasons = [f"{each['judge']}: {each['reason']}" for each in one.verdicts]
    return "; ".join(reasons) or "It was not judged."


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
