"""What people choose from in the menu: selected models, items, runs that lack something."""

from collections.abc import Collection
from datetime import datetime
from typing import NamedTuple

import duckdb

from eval_pipeline.benchmark import current
from eval_pipeline.evaluation.catalog import NOTHING_SELECTED, look
from eval_pipeline.gateways.catalog import Past, select
from eval_pipeline.items import Brief, briefs
from eval_pipeline.journal import SIGHTINGS, Journal
from eval_pipeline.queries import query
from eval_pipeline.records import Model
from eval_pipeline.running import run_async
from eval_pipeline.runs import RunError
from eval_pipeline.settings import Settings


class OfferedModel(NamedTuple):
    """A selected model, and how it did in its latest run that has scores."""

    model: Model
    accuracy: float | None = None
    judged: int = 0


class Unfinished(NamedTuple):
    """A launch that lacks replies or verdicts: how many, in the runs of all its models."""

    run_id: str
    model: str
    models: int
    experiment: str
    opened_at: datetime
    not_asked: int
    failed: int
    not_judged: int


def offered_models(
    settings: Settings, journal: Journal, db: duckdb.DuckDBPyConnection
) -> list[OfferedModel]:
    """The selected models; if none is known yet, the gateways are asked what they offer."""
    found = query(db, "summaries/latest_accuracy").fetchall()
    results = {model: (accuracy, judged) for model, accuracy, judged in found}
    models = _known(settings, journal) or _listed_now(settings, journal)
    return [OfferedModel(model, *results.get(model.id, ())) for model in models]


def offered_items(settings: Settings, journal: Journal) -> list[Brief]:
    """Every item of the benchmark as it was loaded last."""
    return list(briefs(current(journal, settings).items))


def unfinished(
    db: duckdb.DuckDBPyConnection, judges: Collection[str] = (), at_work: Collection[str] = ()
) -> list[Unfinished]:
    """Launches that lack something that `judges` can mend, the newest first.

    What the launches `at_work` are busy with is left to them.
    """
    given = {"judges": list(judges), "at_work": list(at_work)}
    return [Unfinished(*row) for row in query(db, "summaries/unfinished", given).fetchall()]


def _known(settings: Settings, journal: Journal) -> tuple[Model, ...]:
    listed = Past.of(journal.read(SIGHTINGS)).listed.values()
    alive = [one.model for one in listed if one.kept_out is None]
    return select(alive, settings.selection, text_only=settings.plan.text_only).models


def _listed_now(settings: Settings, journal: Journal) -> tuple[Model, ...]:
    seen = run_async(look(settings, journal))
    if not seen.selected.models:
        raise RunError(" ".join((NOTHING_SELECTED, *seen.warnings)))
    return seen.selected.models
