"""What `judge_reliability` holds: its measures by name, and a row of it."""

from collections.abc import Mapping
from dataclasses import dataclass

REPEATS, BETWEEN_JUDGES, PEOPLE, OWN_FAMILY = "repeats", "between judges", "people", "own family"
ALL_JUDGES = "all judges"
"""Who judges in the row over all of them."""


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A row, column by column; what does not apply to a measure, or can not be told, is None."""

    measure: str
    judge: str
    judge_version: str | None = None
    other_judge: str | None = None
    other_judge_version: str | None = None
    labeller: str | None = None
    models: list[str] | None = None
    items: int
    verdicts: int
    rate_correct: float | None = None
    other_rate_correct: float | None = None
    agreement: float | None = None
    base_rate: float | None = None
    kappa: float | None = None
    alpha: float | None = None
    flicker_rate: float | None = None
    flicker_low: float | None = None
    flicker_high: float | None = None
    pairwise_disagreement: float | None = None
    tp: int | None = None
    fp: int | None = None
    tn: int | None = None
    fn: int | None = None
    tpr: float | None = None
    tpr_low: float | None = None
    tpr_high: float | None = None
    tnr: float | None = None
    tnr_low: float | None = None
    tnr_high: float | None = None
    shared_items: int | None = None
    shared_rate_correct: float | None = None
    warning: str | None = None


@dataclass(frozen=True, kw_only=True)
class Shown(Measure):
    """A row for people to read, who are told which judges are simulated."""

    simulated: bool
    other_simulated: bool

    @classmethod
    def of(cls, row: Mapping[str, object]) -> "Shown":
        """From a row of the summary, by column."""
        return cls(**row)  # type: ignore[arg-type]  # the query's columns are these fields

    @property
    def judge_name(self) -> str:
        """The judge, called simulated if it is."""
        return _named(self.judge, simulated=self.simulated)

    @property
    def other_name(self) -> str:
        """The other judge, likewise."""
        return _named(self.other_judge or "", simulated=self.other_simulated)


def _named(judge: str, *, simulated: bool) -> str:
    return f"{judge} (simulated)" if simulated else judge
