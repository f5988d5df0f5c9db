"""The prompt of an item as a run sent it, made again by the code that asks."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from eval_pipeline.environment import SettingsError
from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.gateways.chat import ChatReply, ChatRequest
from eval_pipeline.gateways.limits import RetryPolicy
from eval_pipeline.gateways.rate_limiter import Pace
from eval_pipeline.journal import Journal
from eval_pipeline.kinds import Prompts
from eval_pipeline.money import Forecast
from eval_pipeline.records import IMPORTED_FROM, Item, Model
from eval_pipeline.runs import EXAM_GUIDELINES
from eval_pipeline.settings import Settings
from eval_pipeline.stages.asker import Asker, Hashes
from eval_pipeline.stages.asking import Asking

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


def _asker(model: Model, settings: Settings, experiment_name: str) -> Asker:
    experiment = settings.experiments[experiment_name]
    policy = RetryPolicy(
        attempts=1, attempts_when_limited=1, first_wait_s=0, longest_wait_s=0, total_s=1
    )
    return Asker(
        model=model,
        asking=Asking(_Nobody(), policy, Pace(1), Forecast(model.prices)),
        experiment=experiment.with_override(settings.override(model)),
        prompts=Prompts.of(settings, experiment),
        hashes=Hashes(model),
    )


def _changes(sent: Mapping[str, Any], asker: Asker, item: Item) -> Iterator[str]:
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
