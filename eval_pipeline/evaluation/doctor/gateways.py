"""Checks of gateways and models: keys, lists, who is selected, who judges, what they cost."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import httpx

from eval_pipeline.evaluation.budget import price_warning
from eval_pipeline.evaluation.doctor.report import Finding, State, ok, warning, wrong
from eval_pipeline.gateways.catalog import Catalog, Selected, fetch, select, shortened
from eval_pipeline.gateways.model_lists import CatalogError, shown
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.records.model import Model
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.gateway import Gateway
from eval_pipeline.settings.settings import SETTINGS_FILE, Settings

T = TypeVar("T")
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
        return run_async(self._ask_each(self._list, self.settings.gateways))

    @cached_property
    def knocks(self) -> Mapping[str, Knocked]:
        """By gateway whose models are in the settings, so that it lists none: who answers."""
        described = [one for one in self.settings.gateways if one.models]
        return run_async(self._ask_each(self._knock, described))

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

    async def _ask_each(
        self, ask: Callable[[Gateway, Gateways], Awaitable[T]], asked: Sequence[Gateway]
    ) -> dict[str, T]:
        async with Gateways(self.settings) as gateways:
            answers = await asyncio.gather(*(ask(one, gateways) for one in asked))
        return {gateway.name: answer for gateway, answer in zip(asked, answers, strict=True)}

    async def _list(self, gateway: Gateway, gateways: Gateways) -> Catalog | str:
        """Ask this gateway alone, for how it answers is reported of each."""
        alone = self.settings.model_copy(update={"gateways": (gateway,)})
        redact, longest_s = self.settings.redact, self.longest_s
        try:
            return await fetch(alone, gateways.lent_client, redact=redact, longest_s=longest_s)
        except CatalogError as error:
            return str(error).removeprefix(NOBODY_ANSWERED)
        except Exception as error:  # noqa: BLE001  (the others are reported all the same)
            return f"Gateway '{gateway.name}' could not be asked ({type(error).__name__}: {error})."

    async def _knock(self, gateway: Gateway, gateways: Gateways) -> Knocked:
        """Ask for a list of models, which costs nothing, where the first model is asked."""
        dialect = gateway.models[0].dialect or gateway.own_dialect
        there = {"base_url": gateway.dialect_address(dialect), "models_url": None}
        same_key = {"dialect": dialect, "api_key_variable": gateway.key_variable}
        door = gateway.model_copy(update=there | same_key)
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
        except Exception as error:  # noqa: BLE001  (the others are reported all the same)
            said = shown(str(error), self.settings.redact, limit=200) or type(error).__name__
            return f"Nobody answers ({said})."


_WHERE = {
    "judge": "model under [judge]",
    "reviewer": "reviewer under [coding]",
    "analyst": "model under [analysis]",
}


def key(gateway: Gateway, settings: Settings) -> Iterator[Finding]:
    """Only whether it is there: nothing about a key is told."""
    name, variable = f"key of {gateway.name}", gateway.key_variable
    if settings.key(variable) is not None:
        yield ok(name, f"{variable} is set.")
    elif gateway.needs_key:
        advice = f"Put {variable}=… into .env or into the environment."
        yield wrong(name, f"{variable} is not set.", advice)


def answer(gateway: Gateway, offers: Offers) -> Iterator[Finding]:
    """How many models it lists, or what it said instead."""
    match offers.answers[gateway.name]:
        case str(reason):
            yield wrong(gateway.name, reason, _to_reach(gateway, offers.settings))
        case Catalog(models=()):
            advice = f"Describe them under [[gateways.models]] in {SETTINGS_FILE}."
            yield wrong(gateway.name, "It lists no model.", advice)
        case catalog if gateway.models:
            yield _described(gateway, len(catalog.models), offers)
        case catalog:
            simulated = ", all simulated" if all(one.simulated for one in catalog.models) else ""
            yield ok(gateway.name, f"It lists {_models(len(catalog.models))}{simulated}.")
            mine = f"Gateway '{gateway.name}'"
            if said := tuple(one for one in catalog.warnings if one.startswith(mine)):
                advice = "Models that are left out can be described under [[gateways.models]]."
                yield warning(gateway.name, " ".join(shortened(said)), advice)


def _described(gateway: Gateway, count: int, offers: Offers) -> Finding:
    """A gateway whose models stand in the settings: whether anybody is there."""
    reach = _to_reach(gateway, offers.settings)
    match offers.knocks[gateway.name]:
        case str(reason):
            return wrong(gateway.name, reason, reach)
        case 401 | 403 as status if gateway.key_variable is None:
            advice = f"Name the variable of its key: api_key_variable in {SETTINGS_FILE}."
            return wrong(gateway.name, f"It wants a key (status {status}).", advice)
        case 401 | 403 as status:
            words = f"It answers that the key is wrong or missing (status {status})."
            return wrong(gateway.name, words, reach)
        case status if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            words = f"Somebody answers, but with status {status}."
            return warning(gateway.name, words, f"If that lasts: {reach}")
    return ok(gateway.name, f"It answers; {_models(count)} in the settings.")


def _to_reach(gateway: Gateway, settings: Settings) -> str:
    where = f"base_url under [[gateways]] in {SETTINGS_FILE}"
    if gateway.needs_key and settings.key(gateway.key_variable) is None:
        return f"Put {gateway.key_variable}=… into .env or into the environment."
    if gateway.key_variable is None:
        return f"See that it runs and can be reached from here; its address is {where}."
    return f"Check the key in {gateway.key_variable}, the network, and {where}."


def selection(offers: Offers) -> Iterator[Finding]:
    """Which models will be asked, and which patterns mean nobody."""
    advice = f"See [selection] in {SETTINGS_FILE} and the variables MODELS and EXCLUDE_MODELS."
    chosen = [model.id for model in offers.selected.models]
    if chosen:
        names = ", ".join(shortened(tuple(sorted(chosen))))
        yield ok("selection", f"{_models(len(chosen))}: {names}.")
    elif offers.models:
        yield wrong("selection", "No model that is listed is selected.", advice)
    else:
        yield wrong("selection", "Nobody lists any model.", "Mend the gateways first.")
    for sentence in offers.selected.warnings:
        yield warning("selection", sentence, advice)


def graders(offers: Offers) -> Iterator[Finding]:
    """Whether judges and reviewer are among the models, and real where the models are."""
    settings = offers.settings
    questions = any(suite.kind == "exam" for suite in settings.suites)
    if questions and settings.judge.rules != "only" and not settings.judge.models:
        yield wrong("judge", "Nobody judges answers to questions.", _set_as("judge"))
    for model in settings.judge.models:
        yield from _grader("judge", model, offers)
    for model in settings.coding.reviewers:
        yield from _grader("reviewer", model, offers)
    if settings.analysis.model is not None:  # without it all but `evals analyze` works
        for one in _grader("analyst", settings.analysis.model, offers):
            yield replace(one, state=State.WARNING) if one.state is State.WRONG else one


def _grader(role: str, name: str, offers: Offers) -> Iterator[Finding]:
    found = next((model for model in offers.models if model.id == name), None)
    if found is None and offers.all_answered:
        yield wrong(role, f"No gateway lists {name}.", _set_as(role))
    elif found is None:
        advice = "Mend the gateways that do not answer first."
        yield warning(role, f"None of the gateways that answer lists {name}.", advice)
    elif found.simulated and not all(model.simulated for model in offers.selected.models):
        words = f"{name} is simulated, and knows nothing of the answers of real models."
        yield wrong(role, words, _set_as(role))
    else:
        yield ok(role, f"{name} is listed by {found.gateway}.")


def _set_as(role: str) -> str:
    return f"Name a model that is listed: {_WHERE[role]} in {SETTINGS_FILE}."


def prices(offers: Offers) -> Iterator[Finding]:
    """Whether a budget can be kept."""
    limits = offers.settings.budget.model_dump(exclude_none=True)
    if not limits:
        advice = f"If it costs money, set one under [budget] in {SETTINGS_FILE}."
        yield warning("budget", "There is none: asking does not stop for money.", advice)
        return
    told = ", ".join(
        f"{usd:g} USD {name.removeprefix('usd_').replace('_', ' ')}" for name, usd in limits.items()
    )
    grading = (*offers.settings.judge.models, *offers.settings.coding.reviewers)
    paid = {model.id for model in offers.selected.models} | {*grading}
    asked = [model for model in offers.models if model.id in paid]
    unknown = sorted(one.id for one in asked if price_warning(one, offers.settings.budget))
    if unknown:
        names = ", ".join(shortened(tuple(unknown)))
        words = f"{told}; but the price of {_models(len(unknown))} is not known: {names}."
        advice = 'It holds only if the gateway tells costs; or set prices: [overrides."…"] prices.'
        yield warning("budget", words, advice)
    else:
        yield ok("budget", f"{told}; the price of every model is known.")


def overrides(offers: Offers) -> Iterator[Finding]:
    """Overrides that mean nobody."""
    known = {name for one in offers.models for name in (one.id, one.unpinned_id)}
    for name in sorted(offers.settings.overrides.keys() - known):
        advice = f'Correct or remove [overrides."{name}"] in {SETTINGS_FILE}.'
        yield warning("overrides", f"No gateway that answers lists {name}.", advice)


def _models(count: int) -> str:
    return "1 model" if count == 1 else f"{count} models"
