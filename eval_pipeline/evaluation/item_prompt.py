"""Which item of which run is meant."""

import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
from pydantic import JsonValue

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.evaluation.requests import RequestBuilder
from eval_pipeline.evaluation.runs import EXAM_GUIDELINES
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import Journal
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.run import IMPORTED_FROM
from eval_pipeline.results.queries import query
from eval_pipeline.results.runs import find_runs
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings
from eval_pipeline.text import unknown


class Chosen(NamedTuple):
    """An item in a run of one model."""

    run_id: str
    model: str
    key: ItemKey


def choose_item(
    db: duckdb.DuckDBPyConnection, run: str, item: str, *, command: str = "show"
) -> Chosen:
    """Return the only item that is meant by its id or suite/id, in a run as `find_runs` knows it.

    Where it may be any of several, `evals command` is shown with one of them.
    """
    runs = find_runs(db, run)
    run_id = runs[0].run_id
    given = {"run_id": run_id, "models": [one.model for one in runs]}
    planned = query(db, "summaries/planned_items", given).fetchall()
    found = [
        Chosen(run_id, model, ItemKey(suite, item_id))
        for model, suite, item_id in planned
        if item in (item_id, f"{suite}/{item_id}")
    ]
    if not found:
        paths = [(item_id, f"{suite}/{item_id}") for _, suite, item_id in planned]
        known = {spelling: names[-1] for names in paths for spelling in names}
        raise RunError(unknown("item", item, known, where=f" in run {run_id[:8]}"))
    keys = list(dict.fromkeys("/".join(one.key) for one in found))
    names = [f"{one.model}@{one.run_id[:8]}" for one in found]
    if len(keys) > 1:
        said, example = f"'{item}' may be any of: {', '.join(keys)}.", (run, keys[0])
    elif len(found) > 1:
        said = f"Several models were asked '{item}' in that run: {', '.join(names)}."
        example = (names[0], item)
    else:
        return found[0]
    raise RunError(f"{said} For example: {shlex.join(['evals', command, *example])}")


Message = Mapping[str, JsonValue]
KILOBYTE = 1000
PARAMETERS = {
    "temperature": "the temperature",
    "max_tokens": "the token limit",
    "stream": "whether the reply is streamed",
    "extra": "the extra parameters",
}
PROMPTS = {
    "exam": ("system_prompt_hash", "the system prompt"),
    "coding": ("coding_prompt_hash", "the prompt or the guidelines of coding tasks"),
}


@dataclass(frozen=True)
class Prompt:
    """What was sent, or why that can not be told any more (`missing`); `changed` since then."""

    messages: tuple[Message, ...] = ()
    request_hash: Callable[[int], str] | None = None
    request: Callable[[int], Mapping[str, JsonValue]] | None = None
    """What was asked for in a sample, before a dialect words it."""
    changed: tuple[str, ...] = ()
    missing: str = ""

    def is_exact(self, sample: int, sent: str) -> bool | None:
        """Whether that sample was asked with this very prompt; None if nobody can tell."""
        return None if self.request_hash is None else self.request_hash(sample) == sent


def rebuilding(
    settings: Settings, journal: Journal, run: Mapping[str, Any]
) -> Callable[[Item], Prompt]:
    """Return how items of a run are asked by the experiment and the prompt files as they are."""
    builder = _builder_of(run, settings, journal)
    if isinstance(builder, str):
        return lambda _: Prompt(missing=builder)
    return lambda item: Prompt(
        messages=builder.prompts.messages(item, builder.model),
        request_hash=lambda sample: builder.request_hash(item, sample),
        request=lambda sample: builder.request(item, sample).fields(),
        changed=tuple(_changes(run["parameters"], builder, item)),
    )


def _builder_of(
    run: Mapping[str, Any], settings: Settings, journal: Journal
) -> RequestBuilder | str:
    """Return what builds the requests of a run, or why there is nothing that could."""
    if source := run["parameters"].get(IMPORTED_FROM):
        return f"the run was imported from {source}, which asked in its own way"
    if run["experiment"] not in settings.experiments:
        return f"the settings no longer have the experiment '{run['experiment']}'"
    model = known_models(journal).get(run["model"])
    if model is None:
        return "the catalog does not have the model"
    try:
        return RequestBuilder.of(model, settings, run["experiment"])
    except SettingsError as error:
        return str(error).rstrip(".")


def text_of(message: Message) -> str:
    """What a message says; images are named."""
    content = message["content"]
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n\n".join(_part(part) for part in parts if isinstance(part, dict))


def image_name(uri: str) -> str:
    """An image in a few words: of what kind, and how large."""
    kind, _, data = uri.removeprefix("data:").partition(";")
    size = len(data.removeprefix("base64,")) * 3 / 4
    return f"[image: {kind}, {size / KILOBYTE:.1f} kB]"


def _part(part: Mapping[str, JsonValue]) -> str:
    match part:
        case {"type": "image_url", "image_url": {"url": str(uri)}}:
            return image_name(uri)
    return str(part.get("text", ""))


def _changes(sent: Mapping[str, Any], builder: RequestBuilder, item: Item) -> Iterator[str]:
    """Yield what of a run's parameters is not as it was."""
    now = builder.experiment.model_dump(mode="json", include=set(PARAMETERS))
    for name, words in PARAMETERS.items():
        if name in sent and sent[name] != now[name]:
            yield words
    hashes = {"exam": fingerprint(builder.prompts.exam), "coding": builder.prompts.coding_hash}
    name, words = PROMPTS[item.kind]
    if name in sent and sent[name] != hashes[item.kind]:
        yield words
    told = builder.prompts.exam_guidelines_hashes.get(item.suite)
    if item.kind == "exam" and sent.get(EXAM_GUIDELINES, {}).get(item.suite) != told:
        yield "the guidelines"
