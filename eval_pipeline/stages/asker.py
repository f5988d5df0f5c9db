"""One model and how it is asked: an item becomes a request, and what comes of it a prediction."""

import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from secrets import token_hex
from typing import Any

from pydantic import JsonValue

from eval_pipeline.fingerprints import canonical, fingerprint_of_text
from eval_pipeline.gateways.chat import Asked, ChatRequest
from eval_pipeline.gateways.dialects.messages import MAX_TOKENS
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.history import Pending
from eval_pipeline.journal import JournalWriter
from eval_pipeline.kinds import Prompts
from eval_pipeline.money import unpriced
from eval_pipeline.options import Experiment
from eval_pipeline.records import Item, ItemKey, Model, Prediction, now
from eval_pipeline.settings import Settings
from eval_pipeline.stages.asking import Asking, how_to_ask
from eval_pipeline.stages.workers import Shift

log = logging.getLogger(__name__)
ITEMS_TO_ESTIMATE_BY = 50


@dataclass(frozen=True)
class Asker:
    """Turns an item into a prediction by asking one model."""

    model: Model
    asking: Asking
    experiment: Experiment
    prompts: Prompts
    hashes: "Hashes"
    # What makes an id unlike all others costs more than the rest of it, so it is drawn once.
    ids: str = field(default_factory=lambda: token_hex(8))
    numbers: Iterator[int] = field(default_factory=count)

    @classmethod
    def of(cls, model: Model, settings: Settings, gateways: Gateways) -> "Asker":
        experiment = settings.experiments[settings.experiment]
        return cls(
            model=model,
            asking=how_to_ask(model, settings, gateways, settings.concurrency.num_workers),
            experiment=experiment.with_override(settings.override(model)),
            prompts=Prompts.of(settings, experiment),
            hashes=Hashes(model),
        )

    def request_hash(self, item: Item, sample: int) -> str:
        """Equal for requests that ask for the same in the same way."""
        return self.hashes.of(self.request(item, sample), item, sample)

    def estimate(self, pending: Pending, items: Mapping[ItemKey, Item]) -> float | None:
        """What asking all of them will cost, judged by the length of a few; None if unpriced."""
        if not self.model.prices.known:
            return None
        step = len(pending) // ITEMS_TO_ESTIMATE_BY + 1
        few = [pending[index] for index in range(0, len(pending), step)]
        try:
            requests = [self.request(items[key], sample) for key, sample in few]
            guesses = [self.asking.forecast.guess(request) for request in requests]
        except Exception:  # an item that can not be asked must not cost the others
            log.exception("%s: what it will cost could not be estimated.", self.model.id)
            return None
        return sum(guess.cost_usd for guess in guesses) / max(len(few), 1) * len(pending)

    def warnings(self, settings: Settings, samples: int) -> Iterator[str]:
        """What the numbers of this run will not show by themselves."""
        model, budget = self.model, settings.budget
        if warning := unpriced(model, budget):
            yield warning
        if model.provider is None and settings.gateway(model.gateway).routes:
            yield (
                f"{model.id} is not pinned to a provider, so its answers may come from several; "
                "the column served_by tells from which."
            )
        if samples > 1 and self._temperature == 0:
            yield f"{model.id}: several samples at temperature 0 measure only the server's noise."

    async def predict(
        self, item: Item, sample: int, run_id: str, shift: Shift, writer: JournalWriter[Prediction]
    ) -> None:
        """Asks, and hands the journal what it needs to make a prediction of it."""
        request = self.request(item, sample)
        asked = await self.asking.ask(request, shift)
        outcome, finished_at = asked.outcome, now()

        def make() -> Prediction:
            return Prediction(
                prediction_id=f"{self.ids}{next(self.numbers):016x}",
                run_id=run_id,
                model=self.model.id,
                suite=item.suite,
                item_id=item.id,
                sample=sample,
                attempts=asked.attempts,
                request_hash=self.hashes.of(request, item, sample),
                finished_at=finished_at,
                usage=asked.usage,
                outcome=outcome,
                **_result(asked, self.model),
            )

        shift.heed(outcome, f"{self.model.id}: {asked.error or outcome}")
        await writer.post(make, shift.landed, size=asked.size)

    @cached_property
    def _token_limit(self) -> int | None:
        """Where a limit has to be sent, it is not more than the model can do."""
        limit, most = self.experiment.max_tokens, self.model.max_output_tokens
        if limit is None and most is not None and self.model.dialect == "messages":
            return min(most, MAX_TOKENS)
        return limit

    @cached_property
    def _temperature(self) -> float | None:
        return self.experiment.temperature if self.model.temperature else None

    @cached_property
    def _stream(self) -> bool:
        return self.experiment.stream and self.model.streaming

    def _extra(self, sample: int) -> Mapping[str, JsonValue]:
        """Where there is a seed, every sample has its own; the first is asked as if alone."""
        extra = self.experiment.extra
        match extra.get("seed"):
            case int(seed) if not isinstance(seed, bool):
                return {**extra, "seed": seed + sample}
        return extra

    def request(self, item: Item, sample: int) -> ChatRequest:
        return ChatRequest(
            model=self.model.request_name,
            messages=self.prompts.messages(item, self.model),
            temperature=self._temperature,
            max_tokens=self._token_limit,
            stream=self._stream,
            web_search=self.experiment.web_search,
            extra=self._extra(sample) if sample else self.experiment.extra,
        )


class Hashes:
    """Hashes of one model's requests: of one kind and sample they differ in the last message."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._around: dict[tuple[str, int], tuple[str, str]] = {}

    def of(self, request: ChatRequest, item: Item, sample: int) -> str:
        """Equal for requests that ask for the same in the same way."""
        asked = (item.kind, sample)
        if asked not in self._around:
            self._around[asked] = self._without_content(request)
        before, after = self._around[asked]
        return fingerprint_of_text(before + canonical(request.messages[-1]["content"]) + after)

    def _without_content(self, request: ChatRequest) -> tuple[str, str]:
        """Before and after what differs: a text that is not made anew for each request."""
        *others, last = request.messages
        mark = token_hex(16)
        fields = replace(request, messages=(*others, {**last, "content": mark})).fields()
        if self._model.dialect != "chat_completions":
            fields["dialect"] = self._model.dialect
        before, _, after = canonical(fields).partition(canonical(mark))
        return before, after


def _result(asked: Asked, model: Model) -> dict[str, Any]:
    reply = asked.reply
    if reply is None:
        return {"error": str(asked.error)}
    first = reply.first_token_s
    return {
        "answer": reply.text or reply.refusal,
        "reasoning": reply.reasoning,
        "finish_reason": reply.finish_reason,
        "latency_s": reply.latency_s,
        "first_token_s": first,
        "generation_s": None if first is None else reply.latency_s - first,
        "generation_id": reply.generation_id,
        "served_by": reply.served_by or model.provider,
        "model_reported": reply.model_reported,
        "system_fingerprint": reply.system_fingerprint,
    }
