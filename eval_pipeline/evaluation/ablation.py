"""Guidelines ablation, what is to be asked: the guidelines without each of their sections."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
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
class Wanted:
    """What the user has asked for."""

    toolchain: str = "python"
    pattern: str = ""
    sections: tuple[str, ...] = ()


@dataclass(frozen=True)
class Variation:
    """An experiment: the guidelines as they are, without a section, or none at all."""

    experiment: str
    left_out: str
    # Of what is left out, by its length.
    tokens: int
    settings: Settings
    # What is told instead, where that is in no file yet.
    text: str | None = None

    @property
    def is_section(self) -> bool:
        """Whether it tells something about a section."""
        return self.text is not None

    @cached_property
    def prompt_hash(self) -> str:
        """By which its runs are known from those that were told something else."""
        self.write()
        return Prompts.of(self.settings, self.settings.experiments[self.experiment]).coding_hash

    def write(self) -> None:
        """Puts the file in place that its settings speak of."""
        told = self.settings.experiments[self.experiment].guidelines
        if self.text is None or not isinstance(told, Path):
            return
        path = self.settings.path(told)
        with translate_os_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(self.text, "utf-8")


@dataclass(frozen=True)
class Ablation:
    """Everything that is asked: whom, what, and in which variations; the first is the baseline."""

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

    @property
    def requests(self) -> int:
        """How many there are, if none was answered before."""
        return len(self.variations) * len(self.models) * len(self.plan) * self.samples

    def run(self, evaluate: Evaluate, say: Callable[[str], None]) -> list[str]:
        """Asks what is missing in each variation; one that fails does not keep back the others."""
        failures = []
        for number, one in enumerate(self.variations, start=1):
            say(f"{number} of {len(self.variations)}: {one.experiment}")
            one.write()
            failures += [f"{one.experiment}: {told}" for told in evaluate(one.settings, Mode.FIX)]
        return failures


def plan_ablation(
    settings: Settings, suite: Suite, wanted: Wanted, models: Sequence[Model]
) -> Ablation:
    """What leaving out each section takes; nothing is written or asked."""
    guidelines = _guidelines(settings, suite, wanted.toolchain)
    tasks = _tasks(settings, suite, wanted)
    paths = [f"{task.suite}/{task.category}/{task.id}" for task in tasks.values()]
    # By name, so that runs which go on later still mean the same tasks.
    only = "|".join(map(re.escape, paths))
    chosen = settings.overridden({"plan": {"test_filter": f"^(?:{only})$"}})
    plan, _ = choose(tasks, models[0], chosen.plan)
    if not plan:
        raise RunError(
            f"The suite '{suite.name}' has no task for the toolchain '{wanted.toolchain}' that "
            "passes the filters, so there is nothing to ask."
        )
    variations = tuple(_variations(chosen, guidelines, wanted))
    return Ablation(wanted.toolchain, tuple(models), plan, settings.plan.samples, variations)


async def selected_models(settings: Settings) -> tuple[Model, ...]:
    """Those that would be asked, as their gateways describe them now."""
    async with Gateways(settings) as gateways:
        catalog = await fetch(settings, gateways.lent_client, redact=settings.redact)
    chosen = select(catalog.models, settings.selection, text_only=settings.plan.text_only)
    if not chosen.models:
        raise RunError(f"No model is selected. {' '.join(chosen.warnings)}".strip())
    return chosen.models


def experiment_names(sections: Sequence[Section]) -> dict[str, str]:
    """By section, an experiment's name that no other one has."""
    slugs = {section.name: _slug(section.name) for section in sections}
    alike = list(slugs.values())
    return {
        name: f"without_{slug}"
        if slug and alike.count(slug) == 1
        else f"without_{slug}_{fingerprint(name)[:6]}".replace("__", "_")
        for name, slug in slugs.items()
    }


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", name.lower())[:_LONGEST_SLUG].strip("_")


def _guidelines(settings: Settings, suite: Suite, toolchain: str) -> Guidelines:
    prompts = Prompts.of(settings, settings.experiments[BASELINE])
    guidelines = prompts.guidelines.get(suite.name)
    if guidelines is None or not guidelines.sections(toolchain):
        raise SettingsError(
            f"The experiment '{BASELINE}' tells models nothing about the toolchain '{toolchain}' "
            f"in the suite '{suite.name}': there are no guidelines to leave anything out of."
        )
    return guidelines


def _tasks(settings: Settings, suite: Suite, wanted: Wanted) -> Mapping[ItemKey, CodingTask]:
    """Those of the toolchain that pass the settings' filter and the one asked for."""
    # A pattern that is none is refused here, in the same words as one in the settings.
    filters = [settings.plan, settings.overridden({"plan": {"test_filter": wanted.pattern}}).plan]
    return {
        ItemKey(task.suite, task.id): task
        for task in load_tasks(suite, settings)
        if task.toolchain == wanted.toolchain
        and all(
            re.search(one.test_filter, f"{task.suite}/{task.category}/{task.id}") for one in filters
        )
    }


def _variations(settings: Settings, guidelines: Guidelines, wanted: Wanted) -> Iterator[Variation]:
    sections = guidelines.sections(wanted.toolchain)
    tokens = estimated_tokens(guidelines.text(wanted.toolchain))
    as_usual = settings.overridden({"experiment": BASELINE})
    yield Variation(BASELINE, "nothing", 0, as_usual)
    none_at_all = _changed(settings, NO_GUIDELINES, told=False)
    yield Variation(NO_GUIDELINES, "all of them", tokens, none_at_all)
    names = experiment_names(sections)
    for section in _named(sections, wanted.sections):
        # What other toolchains are told is left out too, for nobody is asked about them.
        text = guidelines.without(section.name).text(wanted.toolchain)
        _refuse_if_read_otherwise(text, section.name)
        path = settings.data_dir / "ablation" / f"{fingerprint(text)}.md"
        changed = _changed(settings, names[section.name], told=path)
        yield Variation(names[section.name], section.name, section.tokens, changed, text)


def _refuse_if_read_otherwise(text: str, left_out: str) -> None:
    """A text that is taken apart again has to come out as it went in."""
    try:
        same = Guidelines.parse(text).text(ALL) == text
    except GuidelinesError:
        same = False
    if not same:
        raise SettingsError(
            f"The guidelines without the section '{left_out}' would be read as something else: "
            "begin each section with a heading such as '## Types', under a name of its own."
        )


def _named(sections: Sequence[Section], names: Sequence[str]) -> list[Section]:
    known = [section.name for section in sections]
    for name in names:
        if name not in known:
            raise SettingsError(f"There is no section '{name}'; there are: {', '.join(known)}.")
    return [section for section in sections if not names or section.name in names]


def _changed(settings: Settings, name: str, *, told: object) -> Settings:
    """The baseline but for its guidelines, whatever else has this name in the settings."""
    same = settings.experiments[BASELINE].model_dump()
    return settings.overridden(
        {"experiment": name, "experiments": {name: {**same, "guidelines": told}}}
    )
