"""One item in full, as people read it: sections of plain text."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.item_prompt import Chosen, Prompt, image_name, rebuilding, text_of
from eval_pipeline.journal import Journal
from eval_pipeline.records.coding import CodingTask, Files
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import Row
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import past_items
from eval_pipeline.suites.coding.reply import UnreadableReply, read_files

ItemsOf = Callable[[Journal, str], Mapping[ItemKey, Item]]
"""Who has the items of a benchmark version."""


@dataclass(frozen=True)
class Reply:
    """One sample: the reply or why there is none, the files in it, and every verdict on it."""

    sample: int
    prediction: Row | None
    prompt_is_exact: bool | None
    files: Files
    no_files_because: str
    verdicts: Sequence[Row]


@dataclass(frozen=True)
class ItemReport:
    """An item in a run: what was asked, what is right, and what came of it."""

    run: Row
    item: Item
    prompt: Prompt
    replies: Sequence[Reply]

    def as_json(self) -> Row:
        """The same as plain values, named like the columns of the tables."""
        item = self.item.model_dump(mode="json", exclude={"id", "image", "grader", "wrong"})
        image = self.item.image
        return {
            **self.run,
            "item_id": self.item.id,
            **item,
            "image": None if image is None else image_name(image),
            "prompt": [
                {"role": one["role"], "content": text_of(one)} for one in self.prompt.messages
            ],
            "prompt_missing_because": self.prompt.missing or None,
            "prompt_changed": list(self.prompt.changed),
            "replies": [vars(reply) for reply in self.replies],
        }


def gather(
    db: duckdb.DuckDBPyConnection,
    settings: Settings,
    journal: Journal,
    chosen: Chosen,
    sample: int | None = None,
    *,
    items: ItemsOf = past_items,
) -> ItemReport:
    """Everything about the item, of all samples or of one."""
    about = {"run_id": chosen.run_id, "model": chosen.model}
    (run,) = rows(query(db, "summaries/run_described", about))
    run |= {"parameters": json.loads(run["parameters"])}
    item = items(journal, run["benchmark_version"])[chosen.key]
    prompt = rebuilding(settings, journal, run)(item)
    given = {**about, **chosen.key._asdict()}
    found = {row["sample"]: row for row in rows(query(db, "summaries/item_predictions", given))}
    verdicts = rows(query(db, "summaries/item_verdicts", given))
    samples: Sequence[int] = range(run["samples"])
    if sample is not None and sample not in samples:
        there = "0 only" if len(samples) == 1 else f"0 to {len(samples) - 1}"
        raise RunError(f"There is no sample {sample}: that run has {there}.")
    replies = [
        _reply_record(number, item, prompt, found.get(number), verdicts)
        for number in (samples if sample is None else [sample])
    ]
    return ItemReport(run, item, prompt, replies)


def _reply_record(
    sample: int, item: Item, prompt: Prompt, prediction: Row | None, verdicts: Sequence[Row]
) -> Reply:
    answer = prediction["answer"] if prediction else None
    files, why_not = Files(), ""
    if answer is not None and isinstance(item, CodingTask):
        try:
            files = read_files(answer, expected=item.expected_files)
        except UnreadableReply as unreadable:
            why_not = str(unreadable)
    return Reply(
        sample=sample,
        prediction=prediction,
        prompt_is_exact=prompt.is_exact(sample, prediction["request_hash"]) if prediction else None,
        files=files,
        no_files_because=why_not,
        verdicts=[one for one in verdicts if one["sample"] == sample],
    )


FACTS = (
    ("outcome", "outcome", ""),
    ("finish_reason", "finish reason", ""),
    ("input_tokens", "input tokens", ""),
    ("output_tokens", "output tokens", ""),
    ("reasoning_tokens", "of them reasoning", ""),
    ("cached_tokens", "cached", ""),
    ("cost_usd", "cost", " USD"),
    ("latency_s", "latency", " s"),
    ("first_token_s", "first text after", " s"),
    ("attempts", "requests", ""),
    ("served_by", "served by", ""),
    ("model_reported", "model as reported", ""),
    ("system_fingerprint", "system fingerprint", ""),
    ("generation_id", "generation id", ""),
    ("carried_from", "taken over from run", ""),
    ("finished_at", "finished", " UTC"),
)
SCORES = {1.0: "right", 0.0: "wrong", None: "no verdict"}


class Section(NamedTuple):
    """A heading and the text under it."""

    heading: str
    text: str


def sections(report: ItemReport) -> Iterator[Section]:
    """All of it, from what was asked to what came of it."""
    run, item = report.run, report.item
    simulated = " (simulated)" if run["simulated"] else ""
    lines = [
        f"run {run['run_id']} of {run['model']}{simulated}",
        f"experiment {run['experiment']}, opened {run['opened_at']:%Y-%m-%d %H:%M} UTC",
        f"benchmark version {run['benchmark_version']}",
        f"{item.kind}, category {item.category}",
    ]
    yield Section(f"{item.suite}/{item.id}", "\n".join(lines))
    yield from _prompt(report)
    yield from _reference(item)
    for reply in report.replies:
        name = f" (sample {reply.sample})" if run["samples"] > 1 else ""
        yield from _reply(reply, name)
        yield from _verdicts(reply, name)


def _prompt(report: ItemReport) -> Iterator[Section]:
    prompt = report.prompt
    if prompt.missing:
        yield Section("Prompt", f"It can not be made again: {prompt.missing}.")
        yield Section("Question", report.item.question)
    elif any(reply.prompt_is_exact is False for reply in report.replies):
        changed = ", ".join(prompt.changed) or "how the model is described, or the code"
        yield Section(
            "Prompt", f"Not exactly as it was sent. What has changed since: {changed}. It is now:"
        )
    for message in prompt.messages:
        yield Section(f"Prompt: {message['role']}", text_of(message))


def _reference(item: Item) -> Iterator[Section]:
    match item:
        case ExamQuestion():
            yield Section(f"Reference answer ({item.answer_type})", item.answer)
            if item.rationale:
                yield Section("Rationale", item.rationale)
        case CodingTask():
            for path, text in item.answer.items():
                yield Section(f"Reference file {path}", text)
            if item.gaps:
                yield Section("Known faults of the task", item.gaps)


def _reply(reply: Reply, name: str) -> Iterator[Section]:
    found = reply.prediction
    if found is None:
        yield Section(f"Reply{name}", "It was not asked yet.")
        return
    if found["reasoning"]:
        yield Section(f"Reasoning{name}", found["reasoning"])
    if found["answer"] is not None:
        yield Section(f"Reply{name}", found["answer"])
    if found["error"] is not None:
        yield Section(f"Error{name}", found["error"])
    for path, text in reply.files.items():
        yield Section(f"File {path}{name}", text)
    if reply.no_files_because:
        yield Section(f"Files{name}", reply.no_files_because)
    told = (f"{words}: {value}" for words, value in facts(found))
    yield Section(f"Facts{name}", "\n".join(told))


def facts(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is known of a reply besides its text: what it is, and how much."""
    for column, words, unit in FACTS:
        value = found[column]
        if value is None:
            continue
        told = f"{value:.4g}" if isinstance(value, float) else str(value)
        estimated = " (estimated)" if column == "cost_usd" and found["cost_estimated"] else ""
        yield words, f"{told}{unit}{estimated}"


def _verdicts(reply: Reply, name: str) -> Iterator[Section]:
    if reply.prediction is not None and not reply.verdicts:
        yield Section(f"Verdict{name}", "There is none yet.")
    for one in reply.verdicts:
        score = SCORES.get(one["score"], f"score {one['score']}")
        heading = f"Verdict of {one['judge']}{name}: {score}"
        yield Section(heading, "\n".join(_verdict(one)))
        for step in one["steps"]:
            yield Section(f"Step {step['step']}{name}: {step['status']}", "\n".join(_step(step)))


def _verdict(one: Mapping[str, Any]) -> Iterator[str]:
    yield str(one["reason"])
    if one["extracted_answer"] is not None:
        yield f"extracted answer: {one['extracted_answer']}"
    if one["confidence"] is not None:
        yield f"confidence: {one['confidence']:.0%}"
    if one["tests_total"] is not None:
        yield f"tests: {one['tests_passed']} of {one['tests_total']} passed"
    if one["graded_by"] not in (None, one["judge"]):
        yield f"graded by: {one['graded_by']}"
    if one["outcome"] != "ok":
        yield f"outcome: {one['outcome']}"
    if one["isolation"] is not None:
        yield f"toolchain: {one['toolchain']}, isolation: {one['isolation']}"
    if one["backend"] is not None:
        yield f"backend: {one['backend']}"
    yield f"version of the judge: {one['judge_version']}"


def _step(step: Mapping[str, Any]) -> Iterator[str]:
    if step["reason"]:
        yield step["reason"]
    if step["output"]:
        yield step["output"]
    for test in step["tests"] or ():
        message = f": {test['message']}" if test["message"] else ""
        yield f"{'passed' if test['passed'] else 'FAILED'} {test['name']}{message}"
    yield f"{step['seconds']:.2f} s"
