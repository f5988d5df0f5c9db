"""Guidelines ablation, what is to be asked: the guidelines without each of their sections."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.runs import choose
from eval_pipeline.gateways.catalog import fetch, select
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import translate_os_errors
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.run import Mode
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.sections import Suite
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.coding.dataset import load_tasks
from eval_pipeline.suites.coding.guidelines import (
    ALL,
    Guidelines,
    GuidelinesError,
    Section,
    estimated_tokens,
)
from eval_pipeline.suites.kinds import Prompts

BASELINE = "default"
"""The experiment that every other one is compared with."""
NO_GUIDELINES = "no_guidelines"
_LONGEST_SLUG = 40

Evaluate = Callable[[Settings, Mode], list[str]]
"""Asks and judges all that is missing; returns what went wrong."""


@dataclass(frozen=True)
class Variation:
    """An experiment: the guidelines as they are, without a section, or none at all."""

    experiment: str
    left_out: str
    # Of what is left out, by its length.
    tokens: int
    settings: Settings
    # The guidelines without a section, which are in no file yet.
    text: str | None = None

    @property
    def is_section(self) -> bool:
        """Return whether this variation leaves out a section."""
        return self.text is not None

    @cached_property
    def prompt_hash(self) -> str:
        """The hash by which its runs are known."""
        self.write()
        return Prompts.of(self.settings, self.settings.experiments[self.experiment]).coding_hash

    def write(self) -> None:
        """Write the file that its settings name."""
        told = self.settings.experiments[self.experiment].guidelines
        if self.text is not None and isinstance(told, Path):
            path = self.settings.path(told)
            with translate_os_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(self.text, "utf-8")


@dataclass(frozen=True)
class Ablation:
    """The models, tasks and variations that are asked; the first variation is the baseline."""

    toolchain: str
    models: tuple[Model, ...]
    plan: tuple[ItemKey, ...]
    samples: int
    variations: tuple[Variation, ...]

    @property
    def baseline(self) -> Variation:
        return self.variations[0]

    @property
    def sections(self) -> int:
        """How many are tried."""
        return sum(one.is_section for one in self.variations)

    def run(self, evaluate: Evaluate, say: Callable[[str], None]) -> list[str]:
        """Ask what is missing in each variation; one that fails does not hold up the others."""
        failures = []
        for number, one in enumerate(self.variations, start=1):
            say(f"{number} of {len(self.variations)}: {one.experiment}")
            one.write()
            failures += [f"{one.experiment}: {told}" for told in evaluate(one.settings, Mode.FIX)]
        return failures


def plan_ablation(
    settings: Settings,
    suite: Suite,
    models: Sequence[Model],
    *,
    toolchain: str = "python",
    pattern: str = "",
    sections: Sequence[str] = (),
) -> Ablation:
    """Return what leaving out each section takes; nothing is written or asked."""
    prompts = Prompts.of(settings, settings.experiments[BASELINE])
    guidelines = prompts.guidelines.get(suite.name)
    if guidelines is None or not guidelines.sections(toolchain):
        raise SettingsError(
            f"The experiment '{BASELINE}' has no guidelines on the toolchain '{toolchain}' "
            f"in the suite '{suite.name}', so there is nothing to leave out."
        )
    tasks = _tasks(settings, suite, toolchain, pattern)
    paths = [f"{task.suite}/{task.category}/{task.id}" for task in tasks.values()]
    # By name, so that runs which go on later still mean the same tasks.
    only = "|".join(map(re.escape, paths))
    chosen = settings.overridden({"plan": {"test_filter": f"^(?:{only})$"}})
    plan, _ = choose(tasks, models[0], chosen.plan)
    if not plan:
        raise RunError(
            f"The suite '{suite.name}' has no task for the toolchain '{toolchain}' that "
            "passes the filters, so there is nothing to ask."
        )
    variations = tuple(_variations(chosen, guidelines, toolchain, sections))
    return Ablation(toolchain, tuple(models), plan, settings.plan.samples, variations)


async def selected_models(settings: Settings) -> tuple[Model, ...]:
    """Return the models to ask, as their gateways describe them now."""
    async with Gateways(settings) as gateways:
        catalog = await fetch(settings, gateways.lent_client, redact=settings.redact)
    chosen = select(catalog.models, settings.selection, text_only=settings.plan.text_only)
    if not chosen.models:
        raise RunError(f"No model is selected. {' '.join(chosen.warnings)}".strip())
    return chosen.models


def experiment_names(sections: Sequence[Section]) -> dict[str, str]:
    """Return the name of each section's experiment, which no other one has."""
    slugs = {
        section.name: re.sub(r"[^a-z0-9]+", "_", section.name.lower())[:_LONGEST_SLUG].strip("_")
        for section in sections
    }
    alike = list(slugs.values())
    return {
        name: f"without_{slug}"
        if slug and alike.count(slug) == 1
        else f"without_{slug}_{fingerprint(name)[:6]}".replace("__", "_")
        for name, slug in slugs.items()
    }


def _tasks(
    settings: Settings, suite: Suite, toolchain: str, pattern: str
) -> Mapping[ItemKey, CodingTask]:
    """Return the toolchain's tasks that pass the settings' filter and the one asked for."""
    # A pattern that is none is refused here, in the same words as one in the settings.
    filters = [settings.plan, settings.overridden({"plan": {"test_filter": pattern}}).plan]
    return {
        ItemKey(task.suite, task.id): task
        for task in load_tasks(suite, settings)
        if task.toolchain == toolchain
        and all(
            re.search(one.test_filter, f"{task.suite}/{task.category}/{task.id}") for one in filters
        )
    }


def _variations(
    settings: Settings, guidelines: Guidelines, toolchain: str, wanted: Sequence[str]
) -> Iterator[Variation]:
    sections = guidelines.sections(toolchain)
    tokens = estimated_tokens(guidelines.text(toolchain))
    yield Variation(BASELINE, "nothing", 0, settings.overridden({"experiment": BASELINE}))
    none_at_all = _changed(settings, NO_GUIDELINES, told=False)
    yield Variation(NO_GUIDELINES, "all of them", tokens, none_at_all)
    names = experiment_names(sections)
    for name in wanted:
        if name not in names:
            raise SettingsError(f"There is no section '{name}'; there are: {', '.join(names)}.")
    for section in (one for one in sections if not wanted or one.name in wanted):
        # What other toolchains are told is left out too, for nobody is asked about them.
        text = guidelines.without(section.name).text(toolchain)
        _refuse_if_read_otherwise(text, section.name)
        path = settings.data_dir / "ablation" / f"{fingerprint(text)}.md"
        changed = _changed(settings, names[section.name], told=path)
        yield Variation(names[section.name], section.name, section.tokens, changed, text)


def _refuse_if_read_otherwise(text: str, left_out: str) -> None:
    """Raise if a text that is taken apart again does not come out as it went in."""
    with suppress(GuidelinesError):
        if Guidelines.parse(text).text(ALL) == text:
            return
    raise SettingsError(
        f"The guidelines without the section '{left_out}' would be read as something else: "
        "begin each section with a heading such as '## Types', under a name of its own."
    )


def _changed(settings: Settings, name: str, *, told: object) -> Settings:
    """The baseline but for its guidelines, whatever else has this name in the settings."""
    same = settings.experiments[BASELINE].model_dump()
    return settings.overridden(
        {"experiment": name, "experiments": {name: {**same, "guidelines": told}}}
    )
