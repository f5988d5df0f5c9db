"""What every gateway lists, or why it does not: asked all at once, within a time limit."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from eval_pipeline.gateway import Gateway
from eval_pipeline.gateways.catalog import Catalog, ClientFor, Limits, Selected, fetch, select
from eval_pipeline.gateways.model_lists import CatalogError, shown
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.records import Model
from eval_pipeline.runtime import run_async
from eval_pipeline.settings import Settings

LONGEST_S = 10.0
"""Less than the pipeline allows: whoever looks does not want to wait."""
NOBODY_ANSWERED = "No gateway listed its models: "
Knocked = int | str
"""The HTTP status with which somebody answered, or the reason why nobody did."""


@dataclass(frozen=True)
class Offers:
    """The lists of all gateways, asked for when they are first needed."""

    settings: Settings
    longest_s: float = LONGEST_S

    @cached_property
    def answers(self) -> Mapping[str, Catalog | str]:
        """By gateway: its models, or the reason why there are none."""
        return run_async(self._ask_all())

    @cached_property
    def models(self) -> tuple[Model, ...]:
        """Every model once, as the first gateway that lists it describes it."""
        catalogs = [one for one in self.answers.values() if isinstance(one, Catalog)]
        listed = [model for catalog in catalogs for model in catalog.models]
        return tuple({model.id: model for model in reversed(listed)}.values())

    @cached_property
    def selected(self) -> Selected:
        """What of it the settings select."""
        chosen, text_only = self.settings.selection, self.settings.plan.text_only
        return select(self.models, chosen, text_only=text_only)

    @property
    def all_answered(self) -> bool:
        return all(isinstance(one, Catalog) for one in self.answers.values())

    @cached_property
    def knocks(self) -> Mapping[str, Knocked]:
        """By gateway: who answers where the models stand in the settings, so that no list tells."""
        return run_async(self._knock_at_all())

    async def _ask_all(self) -> dict[str, Catalog | str]:
        every = self.settings.gateways
        async with Gateways(self.settings) as gateways:
            answers = await asyncio.gather(*(self._ask(one, gateways.lent_client) for one in every))
        return {gateway.name: answer for gateway, answer in zip(every, answers, strict=True)}

    async def _ask(self, gateway: Gateway, client_for: ClientFor) -> Catalog | str:
        """Each on its own, for it is to be told of each how it answers."""
        alone = self.settings.model_copy(update={"gateways": (gateway,)})
        limits = Limits(seconds=self.longest_s)
        try:
            return await fetch(alone, client_for, redact=self.settings.redact, limits=limits)
        except CatalogError as error:
            return str(error).removeprefix(NOBODY_ANSWERED)
        except Exception as error:  # noqa: BLE001  (it must not keep the others from being told)
            return f"Gateway '{gateway.name}' could not be asked ({type(error).__name__}: {error})."

    async def _knock_at_all(self) -> dict[str, Knocked]:
        described = [one for one in self.settings.gateways if one.models]
        async with Gateways(self.settings) as gateways:
            found = await asyncio.gather(*(self._knock(one, gateways) for one in described))
        return {gateway.name: one for gateway, one in zip(described, found, strict=True)}

    async def _knock(self, gateway: Gateway, gateways: Gateways) -> Knocked:
        """Asks for the list of models, which costs nothing; that there is none is an answer too."""
        door = _as_asked(gateway)
        try:
            async with (
                asyncio.timeout(self.longest_s),
                gateways.lent_client(door) as client,
                # The body is of no interest, and may have no end.
                client.stream("GET", door.list_address or "models") as response,
            ):
                return response.status_code
        except TimeoutError:
            return f"Nobody answers within {self.longest_s:g} s."
        except Exception as error:  # noqa: BLE001  (it must not keep the others from being told)
            said = shown(str(error), self.settings.redact, limit=200) or type(error).__name__
            return f"Nobody answers ({said})."


def _as_asked(gateway: Gateway) -> Gateway:
    """The gateway as its first model is asked: there, and with the same key."""
    dialect = gateway.models[0].dialect or gateway.own_dialect
    there = {"base_url": gateway.dialect_address(dialect), "models_url": None, "dialect": dialect}
    return gateway.model_copy(update={**there, "api_key_variable": gateway.key_variable})
