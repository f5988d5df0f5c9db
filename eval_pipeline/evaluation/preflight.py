"""One tiny question to a model before it becomes a partition: does anybody answer for it?"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from eval_pipeline.environment import SettingsError
from eval_pipeline.gateways.chat import ChatRequest, ProviderError
from eval_pipeline.gateways.deadline import Deadline
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.outcomes import Outcome
from eval_pipeline.records import Model
from eval_pipeline.settings import Settings

AT_ONCE = 20
LONGEST_S = 30.0
QUESTION = "Say yes."
# The least that the responses API takes; one token is enough elsewhere.
LEAST_TOKENS = {"responses": 16}

_NOBODY_ANSWERS = {
    Outcome.UNKNOWN_MODEL,
    Outcome.FORBIDDEN,
    Outcome.SERVER_ERROR,
    Outcome.TIMEOUT,
    Outcome.CONNECTION_ERROR,
    Outcome.INVALID_REPLY,
    Outcome.CUT_STREAM,
}
_GATEWAYS_TROUBLE = {Outcome.AUTH, Outcome.NO_CREDIT}


class Preflight(NamedTuple):
    """The models for which nobody answers, each with the reason, and what to warn of."""

    kept_out: Mapping[str, str]
    warnings: tuple[str, ...]


NOBODY_TRIED = Preflight({}, ())


async def preflight(
    models: Iterable[Model], settings: Settings, *, longest_s: float = LONGEST_S
) -> Preflight:
    """Asks each model once, several at a time; what says that somebody is there is enough."""
    async with Gateways(settings) as gateways:
        trial = _Trial(gateways, Deadline(longest_s))
        async with asyncio.TaskGroup() as group:
            for model in models:
                group.create_task(trial.ask(model))
    kept_out = dict(sorted(trial.kept_out.items()))
    return Preflight(
        kept_out,
        (
            *(
                f"The models of gateway '{gateway}' are taken without a trial: {why}"
                for gateway, why in sorted(trial.troubled.items())
            ),
            *(f"{model} is kept out: {why}" for model, why in kept_out.items()),
        ),
    )


@dataclass(frozen=True)
class _Trial:
    """Who answers for none of its models is found out once; who asks does not insist."""

    gateways: Gateways
    deadline: Deadline
    places: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(AT_ONCE))
    kept_out: dict[str, str] = field(default_factory=dict)
    troubled: dict[str, str] = field(default_factory=dict)

    async def ask(self, model: Model) -> None:
        async with self.places:
            if model.gateway in self.troubled:
                return
            try:
                await self._complete(model)
            except SettingsError as error:
                self.troubled[model.gateway] = str(error)
            except ProviderError as error:
                self._heed(model, error)

    async def _complete(self, model: Model) -> None:
        provider = replace(self.gateways.provider(model), deadline=self.deadline)
        await provider.complete(
            ChatRequest(
                model=model.request_name,
                messages=({"role": "user", "content": QUESTION},),
                max_tokens=LEAST_TOKENS.get(model.dialect, 1),
                stream=model.streaming,
            )
        )

    def _heed(self, model: Model, error: ProviderError) -> None:
        """A bad key or an empty purse says nothing about the model."""
        if error.outcome in _GATEWAYS_TROUBLE:
            self.troubled.setdefault(model.gateway, f"{error.outcome}: {error}")
        elif error.outcome in _NOBODY_ANSWERS:
            self.kept_out[model.id] = f"{error.outcome}: {error}"
