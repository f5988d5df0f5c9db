"""What the menu offers, as lines to choose from, and the words of the command that is chosen."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from eval_pipeline.untrusted import printable

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from eval_pipeline.choosing import OfferedModel, Unfinished
    from eval_pipeline.items import Brief
    from eval_pipeline.records import Prices
    from eval_pipeline.results.runs import FoundRun
    from eval_pipeline.settings import Settings

ALL = ""
"""What stands for all models; no model is called that."""
EVERYTHING, SUITES, CATEGORIES, ITEMS = "everything", "suites", "categories", "items"
WIDEST = 40


class Line(NamedTuple):
    """One line to choose; names in it are others', so that it is made printable."""

    value: str
    title: str


@dataclass(frozen=True)
class Chosen:
    """What was chosen for a run; what was not is left to the settings."""

    models: Sequence[str] = ()
    part: str = EVERYTHING
    names: Sequence[str] = ()
    experiment: str = ""
    max_samples: str = ""
    budget: str = ""

    def words(self) -> list[str]:
        """The words of the command after `evals`."""
        options = [
            *(("-m", model) for model in self.models),
            *self._of_part(),
            ("-e", self.experiment),
            ("--max-samples", self.max_samples),
            ("--budget", self.budget),
        ]
        return ["run", *(word for flag, value in options if value for word in (flag, value))]

    def _of_part(self) -> list[tuple[str, str]]:
        if self.part == ITEMS:
            return [("-f", exactly(self.names))]
        flag = "-s" if self.part == SUITES else "-c"
        return [(flag, name) for name in self.names]


def exactly(items: Iterable[str]) -> str:
    """A filter that lets these items pass, each as suite/category/id, and no others."""
    return f"^({'|'.join(map(re.escape, items))})$"


def path_of(brief: "Brief") -> str:
    """The item as filters see it."""
    return f"{brief.key.suite}/{brief.category}/{brief.key.item_id}"


def model_lines(offered: "Sequence[OfferedModel]") -> list[Line]:
    """All of them first, then each with its price and how it did."""
    first = Line(ALL, f"all {_count(len(offered), 'selected model')}")
    rows = [(one.model.id, one.model.id, _about(one)) for one in offered]
    return [first, *_table(rows)]


def part_lines(briefs: "Sequence[Brief]", *, narrowed: bool) -> list[Line]:
    """How to choose items; what the settings leave out is left out of everything too."""
    whole = "everything that the settings choose" if narrowed else "everything"
    suites, categories = {one.key.suite for one in briefs}, {one.category for one in briefs}
    parts = [
        Line(EVERYTHING, f"{whole}, of {_count(len(briefs), 'item')}"),
        Line(SUITES, f"some of {_count(len(suites), 'suite')}"),
        Line(CATEGORIES, f"some of {_count(len(categories), 'category', 'categories')}"),
        Line(ITEMS, "single items"),
    ]
    return [one for one in parts if one.value != SUITES or len(suites) > 1]


def names_of(part: str, briefs: "Sequence[Brief]") -> list[Line]:
    """The suites, categories or items there are."""
    if part == ITEMS:
        return [Line(path, printable(path)) for path in map(path_of, briefs)]
    found = (one.key.suite if part == SUITES else one.category for one in briefs)
    counts = sorted(Counter(found).items())
    return _table([(name, name, _count(number, "item")) for name, number in counts])


def experiment_lines(settings: "Settings") -> list[Line]:
    """Every experiment, that of the settings first."""
    others = [name for name in settings.experiments if name != settings.experiment]
    return [Line(name, printable(name)) for name in (settings.experiment, *others)]


def run_lines(launches: "Iterable[Unfinished]") -> list[Line]:
    """Each launch with what is missing; its value is its id."""
    return [Line(one.run_id, printable(_lacking(one))) for one in launches]


def go_on(launch: "Unfinished") -> list[str]:
    """The words that finish it: what was never asked is asked, else what failed is repaired."""
    name = launch.run_id[:8]
    return ["run", "--resume", name] if launch.not_asked else ["fix", name]


def again(runs: "Sequence[FoundRun]", selected: Iterable[str]) -> list[str]:
    """The words that ask again what failed in these runs of one launch."""
    models = sorted({run.model for run in runs})
    named = () if models == sorted(selected) else models
    picked = Chosen(models=named, experiment=runs[0].experiment)
    return ["run", "--failed", *picked.words()[1:]]


def a_count(text: str) -> bool | str:
    """Whether this is a number of items, or none is given."""
    text = text.strip()
    fits = not text or (text.isascii() and text.isdigit() and int(text) > 0)
    return fits or "A whole number, or nothing."


def an_amount(text: str) -> bool | str:
    """Whether this is an amount of money, or none is given."""
    text = text.strip()
    fits = re.fullmatch(r"\d{0,12}(\.\d{0,6})?", text, re.ASCII) and (not text or _is_more(text))
    return bool(fits) or "An amount such as 2.50, or nothing."


def _is_more(text: str) -> bool:
    return any(digit in text for digit in "123456789")


def _about(offered: "OfferedModel") -> str:
    done = ""
    if offered.accuracy is not None:
        done = f"last {offered.accuracy:.1%} of {offered.judged}"
    simulated = "simulated" if offered.model.simulated else ""
    return ", ".join(filter(None, (_price(offered.model.prices), done, simulated)))


def _price(prices: "Prices") -> str:
    if prices.prompt is None or prices.completion is None:
        return "price unknown"
    per_million = (f"${one * 1e6:.4g}" for one in (prices.prompt, prices.completion))
    return f"{'/'.join(per_million)} per million tokens"


def _lacking(launch: "Unfinished") -> str:
    who = launch.model if launch.models == 1 else f"{launch.models} models"
    lacks = {
        "not asked": launch.not_asked,
        "failed": launch.failed,
        "not judged": launch.not_judged,
    }
    told = ", ".join(f"{number} {what}" for what, number in lacks.items() if number)
    when = f"{launch.opened_at:%Y-%m-%d %H:%M}"
    return f"{launch.run_id[:8]}  {when}  {who}, {launch.experiment}: {told}"


def _table(rows: Sequence[tuple[str, str, str]]) -> list[Line]:
    """Rows of value, name and what there is to say of it, the latter in a column."""
    width = min(WIDEST, max((len(name) for _, name, _ in rows), default=0))
    return list(_lines(rows, width))


def _lines(rows: Iterable[tuple[str, str, str]], width: int) -> Iterator[Line]:
    for value, name, about in rows:
        yield Line(value, f"{printable(name):<{width}}  {about}")


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"
