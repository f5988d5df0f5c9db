"""All that is known of one item in one run."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import duckdb

from eval_pipeline.benchmark import past_items
from eval_pipeline.coding.records import CodingTask, Files
from eval_pipeline.coding.reply import UnreadableReply, read_files
from eval_pipeline.errors import RunError
from eval_pipeline.item_report.choosing import Chosen
from eval_pipeline.item_report.prompt import Prompt, image_name, rebuild, text_of
from eval_pipeline.journal import Journal
from eval_pipeline.records import Item, ItemKey
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import Row
from eval_pipeline.settings import Settings

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
    prompt = rebuild(settings, journal, run, item)
    given = {**about, **chosen.key._asdict()}
    predictions = {
        row["sample"]: row for row in rows(query(db, "summaries/item_predictions", given))
    }
    verdicts = rows(query(db, "summaries/item_verdicts", given))
    return ItemReport(
        run,
        item,
        prompt,
        [
            _reply(number, item, prompt, predictions.get(number), verdicts)
            for number in _samples(run["samples"], sample)
        ],
    )


def _samples(asked: int, wanted: int | None) -> Sequence[int]:
    if wanted is None:
        return range(asked)
    if wanted not in range(asked):
        there = "0 only" if asked == 1 else f"0 to {asked - 1}"
        raise RunError(f"There is no sample {wanted}: that run has {there}.")
    return [wanted]


def _reply(
    sample: int, item: Item, prompt: Prompt, prediction: Row | None, verdicts: Sequence[Row]
) -> Reply:
    answer = (prediction or {}).get("answer")
    files, why_not = _files(item, answer)
    return Reply(
        sample=sample,
        prediction=prediction,
        prompt_is_exact=prompt.is_exact(sample, prediction["request_hash"]) if prediction else None,
        files=files,
        no_files_because=why_not,
        verdicts=[one for one in verdicts if one["sample"] == sample],
    )


def _files(item: Item, answer: str | None) -> tuple[Files, str]:
    if answer is None or not isinstance(item, CodingTask):
        return {}, ""
    try:
        return read_files(answer, expected=item.expected_files), ""
    except UnreadableReply as unreadable:
        return {}, str(unreadable)
