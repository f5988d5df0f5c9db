"""Decisions which models are due to be evaluated again, each with a sentence that says why."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import exp2

import duckdb

from eval_pipeline.results.queries import query

DAY, YEAR = timedelta(days=1), timedelta(days=365.25)
SHORTEST_DAYS, LONGEST_DAYS = 1, 60
CHEAP_USD, DEAR_USD = 5, 50
HIGHEST_FLOOR_DAYS = 14
NOT_LISTED = "the catalog does not have it as selected and listed (materialize model_catalog)"


@dataclass(frozen=True)
class Standing:
    """Facts about a model; `busy` is the id of a Dagster run for it, running or queued.

    `barred` is why it cannot be asked at all.
    """

    model: str
    released_at: datetime | None = None
    last_attempt_at: datetime | None = None
    run_cost_usd: float | None = None
    busy: str | None = None
    barred: str | None = None


@dataclass(frozen=True)
class Decision:
    """A decision whether a model is due, from when on (None if unknown), and why."""

    model: str
    due: bool
    due_at: datetime | None
    reason: str

    @property
    def row(self) -> tuple[str, ...]:
        """The decision as a row of a table."""
        return self.model, "yes" if self.due else "no", _minute(self.due_at), self.reason


def decide(standing: Standing, moment: datetime) -> Decision:
    """Return whether a model is due: never attempted, or long enough ago for its age and cost."""
    model, busy = standing.model, standing.busy
    if why_not := standing.barred or (busy and f"run {busy[:8]} is queued or running"):
        return Decision(model, due=False, due_at=None, reason=f"not due: {why_not}")
    if standing.last_attempt_at is None:
        return Decision(model, due=True, due_at=moment, reason="due: never evaluated")
    return _decide_again(standing, standing.last_attempt_at, moment)


def interval_days(age: timedelta) -> float:
    """Return the days between evaluations: 1 for a new model, 30.5 at a year, towards 60."""
    return LONGEST_DAYS - (LONGEST_DAYS - SHORTEST_DAYS) * exp2(-(age / YEAR))


def floor_days(run_cost_usd: float | None) -> float:
    """Return the least days between evaluations: more, the more a run costs; 0 if unknown."""
    dearness = ((run_cost_usd or 0.0) - CHEAP_USD) / (DEAR_USD - CHEAP_USD)
    return HIGHEST_FLOOR_DAYS * min(1.0, max(0.0, dearness))


def standings(
    db: duckdb.DuckDBPyConnection,
    experiment: str,
    models: Iterable[str],
    busy: Mapping[str, str],
    *,
    filtered: bool = False,
    barred: Mapping[str, str] | None = None,
) -> list[Standing]:
    """Return what the DuckDB file knows of these models under the experiment.

    `filtered` says whether the evaluations to come are for a part of the benchmark only.
    """
    given = {"experiment": experiment, "filtered": filtered}
    known = {model: facts for model, *facts in query(db, "standings", given).fetchall()}
    found = []
    for model in models:
        released_at, attempted_at, run_cost_usd = known.get(model, (None, None, None))
        why_not = (barred or {}).get(model) if model in known else NOT_LISTED
        times = _utc(released_at), _utc(attempted_at)
        found.append(Standing(model, *times, run_cost_usd, busy.get(model), why_not))
    return found


def for_people(decisions: Iterable[Decision]) -> list[Decision]:
    """Return what is due first, then what will be next, and unknown times last."""
    later = datetime.max.replace(tzinfo=UTC)
    return sorted(decisions, key=lambda one: (not one.due, one.due_at or later, one.model))


def summed_up(decisions: Sequence[Decision]) -> str:
    """Return a sentence about all of them."""
    due = sum(one.due for one in decisions)
    coming = [one.due_at for one in decisions if one.due_at is not None and not one.due]
    following = f"; the next one is on {_minute(min(coming))} UTC" if coming else ""
    return f"{due} of {len(decisions)} models are due{following}."


def _decide_again(standing: Standing, last: datetime, moment: datetime) -> Decision:
    # Its age back then, so that the time which is told now is still the time when it comes.
    age, cost_usd = max(last - (standing.released_at or last), 0 * DAY), standing.run_cost_usd
    interval, floor = interval_days(age), floor_days(cost_usd)
    due_at = last + max(interval, floor) * DAY
    due = due_at <= moment
    when = f"{'due since' if due else 'not due until'} {_minute(due_at)} UTC"
    ago = f"last attempt {max(moment - last, 0 * DAY) / DAY:.1f} days ago"
    why = f"interval {interval:.1f} days at an age of {age.days} days"
    if cost_usd is None:
        why += "; what a run costs is not known"
    elif floor > interval:
        why = f"runs cost about {cost_usd:.2f} USD, so at least {floor:.1f} days apart"
    return Decision(standing.model, due, due_at, f"{when}: {ago}, {why}")


def _minute(moment: datetime | None) -> str:
    return "" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def _utc(moment: datetime | None) -> datetime | None:
    """Add the time zone, which the tables leave out."""
    return None if moment is None else moment.replace(tzinfo=UTC)
