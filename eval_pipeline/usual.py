"""What calls have used lately, suite by suite: an answer in an exam is no measure for a program."""

from collections.abc import Iterable, Sequence
from itertools import islice
from statistics import fmean
from typing import Any, NamedTuple

from pydantic import ConfigDict

from eval_pipeline.journal import FileCompactedError, Journal, Stream
from eval_pipeline.record import Record
from eval_pipeline.records import Usage

ENOUGH = 200
"""So many earlier calls, or questions, tell what the others are like."""
MOST_READ = 10_000
"""So far back they are looked for: a suite that has none must not cost a reading of everything."""


class Usual(NamedTuple):
    """What calls of one kind have used lately, on average; None where nobody said."""

    calls: int = 0
    output_tokens: float | None = None
    cost_usd: float | None = None


def usual(
    journal: Journal,
    stream: Stream[Any],
    model: str,
    suites: Iterable[str],
    graded_by: str | None = None,
) -> dict[str, Usual]:
    """What the model's answers in each suite, or the verdicts of one judge on them, have used."""
    names = list(suites)
    while True:
        try:
            return _usual(journal, Stream(stream.name, _Used), model, names, graded_by)
        except FileCompactedError:  # compacted meanwhile: they stand in another file now
            continue


def mean(values: Iterable[float | None]) -> float | None:
    """Of those that are known."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


class _Used(Record):
    """What a prediction, a judgement or a diagnosis used, without the rest of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    suite: str
    usage: Usage = Usage()
    graded_by: str | None = None

    @property
    def told(self) -> bool:
        return self.usage.tokens is not None or self.usage.cost_usd is not None


def _usual(
    journal: Journal,
    stream: Stream[_Used],
    model: str,
    suites: Sequence[str],
    graded_by: str | None,
) -> dict[str, Usual]:
    found: dict[str, list[Usage]] = {suite: [] for suite in suites}
    lacking = set(suites)
    for one in islice(journal.read_newest(stream, model), MOST_READ):
        if not lacking:
            break
        if one.suite in lacking and one.graded_by == graded_by and one.told:
            found[one.suite].append(one.usage)
            if len(found[one.suite]) == ENOUGH:
                lacking.discard(one.suite)
    return {suite: _average(usages) for suite, usages in found.items()}


def _average(usages: Sequence[Usage]) -> Usual:
    return Usual(
        len(usages),
        mean(usage.output_tokens for usage in usages),
        mean(usage.cost_usd for usage in usages),
    )
