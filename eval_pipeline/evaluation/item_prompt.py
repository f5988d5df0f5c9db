"""Which item of which run is meant."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import duckdb
from pydantic import JsonValue

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import Forecast
from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.evaluation.requests import ModelClient, RequestBuilder
from eval_pipeline.evaluation.runs import EXAM_GUIDELINES
from eval_pipeline.gateways.chat import ChatReply, ChatRequest
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.gateways.rate_limiter import RateLimiter
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import Journal
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.run import IMPORTED_FROM
from eval_pipeline.results.queries import query
from eval_pipeline.results.runs import find_runs
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.kinds import Prompts
from eval_pipeline.text import unknown


class Chosen(NamedTuple):
    """An item in a run of one model."""

    run_id: str
    model: str
    key: ItemKey


def choose_item(
    db: duckdb.DuckDBPyConnection, run: str, item: str, *, command: str = "show"
) -> Chosen:
    """The only item that is meant: by its id or suite/id, in a run as `find_runs` knows it.

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
        keys = [ItemKey(suite, item_id) for _, suite, item_id in planned]
        known = {spelling: _path(key) for key in keys for spelling in (key.item_id, _path(key))}
        raise RunError(unknown("item", item, known, where=f" in run {run_id[:8]}"))
    return _only_one(found, run, item, command)


def _only_one(found: Sequence[Chosen], run: str, item: str, command: str) -> Chosen:
    keys = list(dict.fromkeys(one.key for one in found))
    if len(keys) > 1:
        said = f"'{item}' may be any of: {', '.join(map(_path, keys))}."
        raise RunError(f"{said} For example: {_example(command, run, _path(keys[0]))}")
    if len(found) > 1:
        names = [f"{one.model}@{one.run_id[:8]}" for one in found]
        said = f"Several models were asked '{item}' in that run: {', '.join(names)}."
        raise RunError(f"{said} For example: {_example(command, names[0], item)}")
    return found[0]


def _example(command: str, run: str, item: str) -> str:
    return shlex.join(["evals", command, run, item])


def _path(key: ItemKey) -> str:
    return f"{key.suite}/{key.item_id}"


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


class _Nobody:
    """Answers for a model that is not asked anything."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        raise NotImplementedError(f"{request.model} is not to be asked.")


def rebuild(settings: Settings, journal: Journal, run: Mapping[str, Any], item: Item) -> Prompt:
    """Makes it from the experiment and the prompt files as they are now; nobody is asked."""
    return rebuilding(settings, journal, run)(item)


def rebuilding(
    settings: Settings, journal: Journal, run: Mapping[str, Any]
) -> Callable[[Item], Prompt]:
    """The same for many items of one run: what they share is looked up once."""
    if source := run["parameters"].get(IMPORTED_FROM):
        imported = Prompt(missing=f"the run was imported from {source}, which asked in its own way")
        return lambda _: imported
    if run["experiment"] not in settings.experiments:
        name = run["experiment"]
        missing = Prompt(missing=f"the settings no longer have the experiment '{name}'")
        return lambda _: missing
    model = known_models(journal).get(run["model"])
    if model is None:
        return lambda _: Prompt(missing="the catalog does not have the model")
    try:
        asker = _asker(model, settings, run["experiment"])
    except SettingsError as error:
        missing = Prompt(missing=str(error).rstrip("."))
        return lambda _: missing
    return lambda item: Prompt(
        messages=asker.prompts.messages(item, model),
        request_hash=lambda sample: asker.request_hash(item, sample),
        request=lambda sample: asker.request(item, sample).fields(),
        changed=tuple(_changes(run["parameters"], asker, item)),
    )


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


def _asker(model: Model, settings: Settings, experiment_name: str) -> RequestBuilder:
    experiment = settings.experiments[experiment_name]
    policy = RetryPolicy(
        attempts=1, attempts_when_limited=1, first_wait_s=0, longest_wait_s=0, total_s=1
    )
    return RequestBuilder(
        model=model,
        client=ModelClient(_Nobody(), policy, RateLimiter(1), Forecast(model.prices)),
        experiment=experiment.with_override(settings.override(model)),
        prompts=Prompts.of(settings, experiment),
    )


def _changes(sent: Mapping[str, Any], asker: RequestBuilder, item: Item) -> Iterator[str]:
    """What of a run's parameters is not as it was."""
    now = asker.experiment.model_dump(mode="json", include=set(PARAMETERS))
    for name, words in PARAMETERS.items():
        if name in sent and sent[name] != now[name]:
            yield words
    hashes = {"exam": fingerprint(asker.prompts.exam), "coding": asker.prompts.coding_hash}
    name, words = PROMPTS[item.kind]
    if name in sent and sent[name] != hashes[item.kind]:
        yield words
    told = asker.prompts.exam_guidelines_hashes.get(item.suite)
    if item.kind == "exam" and sent.get(EXAM_GUIDELINES, {}).get(item.suite) != told:
        yield "the guidelines"
