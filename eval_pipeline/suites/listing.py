"""What there is to run: suites with their categories and items, and the experiments."""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from eval_pipeline.errors import RunError
from eval_pipeline.records.item import Item, ItemKey, SuiteKind
from eval_pipeline.records.run import PlanFilter
from eval_pipeline.settings.sections import Experiment
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark
from eval_pipeline.suites.items import Brief, briefs
from eval_pipeline.text import unknown


class Category(NamedTuple):
    """A category of a suite, and how many of its items can be read without seeing images."""

    category: str
    items: int
    text_items: int


class OfferedSuite(NamedTuple):
    """A suite as the settings name it."""

    suite: str
    kind: SuiteKind
    items: int
    text_items: int
    categories: Sequence[Category]


class OfferedItem(NamedTuple):
    """An item as the models read it; `input` is text or image, as in metrics."""

    suite: str
    category: str
    item_id: str
    kind: SuiteKind
    input: str
    question: str


class OfferedExperiment(NamedTuple):
    """An experiment with what is not as in `default`; of that, what is not as built in."""

    experiment: str
    is_chosen: bool
    varies: Mapping[str, Any]


def suites(benchmark: Benchmark) -> list[OfferedSuite]:
    """Every suite with its categories, in the order of the settings."""
    known = list(briefs(benchmark.items))
    offered = []
    for version in benchmark.version.suites:
        found = [one for one in known if one.key.suite == version.suite]
        of_all = Counter(one.category for one in found)
        of_text = Counter(one.category for one in found if not one.has_image)
        categories = [Category(one, of_all[one], of_text[one]) for one in sorted(of_all)]
        offered.append(
            OfferedSuite(version.suite, version.kind, len(found), of_text.total(), categories)
        )
    return offered


def items(
    benchmark: Benchmark, *, suite: str | None, category: str | None, pattern: str
) -> Iterator[OfferedItem]:
    """The items of a suite, of a category, and that match a regular expression."""
    suites = () if suite is None else (suite,)
    categories = () if category is None else (category,)
    _check_known("suite", suites, [version.suite for version in benchmark.version.suites])
    known = {one.category for one in briefs(benchmark.items) if suite in (None, one.key.suite)}
    _check_known("category", categories, sorted(known))
    try:
        re.compile(pattern)
    except re.error as error:
        raise RunError(f"'{pattern}' is no regular expression: {error}.") from None
    chosen = PlanFilter(suites=suites, categories=categories, test_filter=pattern)
    for key, category_of, has_image in planned(benchmark.items, chosen):
        item, shown = benchmark.items[key], "image" if has_image else "text"
        yield OfferedItem(key.suite, category_of, key.item_id, item.kind, shown, item.question)


def experiments(settings: Settings) -> list[OfferedExperiment]:
    """Every experiment, the default first."""
    offered = []
    for name, one in settings.experiments.items():
        usual = Experiment() if name == "default" else settings.experiments["default"]
        fields = {field for field, value in one if value != getattr(usual, field)}
        varies = one.model_dump(mode="json", include=fields)
        offered.append(OfferedExperiment(name, name == settings.experiment, varies))
    return offered


def as_json(
    suites: Sequence[OfferedSuite], experiments: Sequence[OfferedExperiment]
) -> dict[str, Any]:
    """Both as plain values."""
    return {
        "suites": [
            {**one._asdict(), "categories": [each._asdict() for each in one.categories]}
            for one in suites
        ],
        "experiments": [one._asdict() for one in experiments],
    }


def planned(items: Mapping[ItemKey, Item], chosen: PlanFilter) -> Iterator[Brief]:
    """Yield the items that pass the filter, whichever model is to be asked."""
    planned_of: Counter[str] = Counter()
    for brief in briefs(items):
        suite = brief.key.suite
        if _matches(brief, chosen) and planned_of[suite] != chosen.max_samples:
            planned_of[suite] += 1
            yield brief


def check_filter(items: Mapping[ItemKey, Item], chosen: PlanFilter) -> None:
    """Raise if a suite or a category does not exist, or no item passes the filter."""
    found = list(briefs(items))
    _check_known("suite", chosen.suites, sorted({brief.key.suite for brief in found}))
    _check_known("category", chosen.categories, sorted({brief.category for brief in found}))
    if next(planned(items, chosen), None) is None:
        shown = chosen.model_dump_json(include=set(PlanFilter.model_fields), exclude_defaults=True)
        raise RunError(f"No item passes the filter {shown}: evals list shows what there is.")


def _check_known(noun: str, named: Iterable[str], known: Collection[str]) -> None:
    for name in named:
        if name not in known:
            raise RunError(unknown(noun, name, known))


def _matches(brief: Brief, chosen: PlanFilter) -> bool:
    if chosen.suites and brief.key.suite not in chosen.suites:
        return False
    if chosen.categories and brief.category not in chosen.categories:
        return False
    if chosen.text_only and brief.has_image:
        return False
    path = f"{brief.key.suite}/{brief.category}/{brief.key.item_id}"
    return not chosen.test_filter or re.search(chosen.test_filter, path) is not None
