"""Versions of assets: of what they are made with, and of what they hold."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import dagster as dg
from pydantic import JsonValue

from eval_pipeline.analysis.analyst import PROMPT as ANALYSIS_PROMPT
from eval_pipeline.analysis.analyst import SCHEMA as ANALYSIS_SCHEMA
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.environment import SettingsError
from eval_pipeline.exam.rules import RULES_VERSION
from eval_pipeline.exam.verdict import SCHEMA
from eval_pipeline.fingerprints import fingerprint
from eval_pipeline.kinds import Prompts, read_prompt
from eval_pipeline.options import PACKAGE
from eval_pipeline.queries import query
from eval_pipeline.records import PROTOCOL
from eval_pipeline.settings import Settings
from eval_pipeline.stages.reviewing import PROMPT as REVIEW_PROMPT

UNREADABLE = "unreadable"
CATALOG = dg.DataVersion("each model is a partition")
"""That of the catalog, whatever it lists.

Of an asset without partitions Dagster can not tell whom a change concerns: a new price of one
model would make the replies of all look out of date. A new model has none: they are missing.
"""

# How replies and verdicts are read is here, and not with predictions and judged: if it changes,
# numbers are to be computed again, but nobody has to be asked again.
_SCORES = (
    "sql/load/runs.sql",
    "sql/load/predictions.sql",
    "sql/load/judged.sql",
    "sql/derive/scores.sql",
    "deriving.py",
)
_COMPARED = (
    *_SCORES,
    "sql/derive/metrics.sql",
    "sql/derive/entries.sql",
    "comparing.py",
    "stats/bootstrap.py",
    "stats/clusters.py",
    "stats/intervals.py",
    "stats/pairs.py",
    "stats/ties.py",
)
FILES: Mapping[str, Sequence[str]] = {
    "dataset": ("sql/load/versions.sql", "sql/load/items.sql"),
    "model_catalog": ("sql/load/sightings.sql",),
    "predictions": (),
    "judged": (),
    "judge_reliability": (
        "sql/load/judged.sql",
        "sql/load/rejudged.sql",
        "sql/load/labels.sql",
        "sql/derive/judges.sql",
        "sql/derive/judge_reliability.sql",
        "deriving.py",
        "reliability/measures.py",
        "reliability/measuring.py",
        "stats/agreement.py",
        "stats/intervals.py",
    ),
    "run_reports": ("sql/load/diagnoses.sql", "sql/load/reclassified.sql"),
    "metrics": (
        *_SCORES,
        "sql/derive/metrics.sql",
        "sql/derive/pass_at_k.sql",
        "sql/derive/calibration_bins.sql",
        "measuring.py",
        "stats/bootstrap.py",
        "stats/calibration.py",
        "stats/intervals.py",
    ),
    "comparisons": (*_COMPARED, "sql/derive/comparisons.sql"),
    # Its ranks and ties come from comparing, and are not in comparisons.
    "leaderboard": (
        *_COMPARED,
        "sql/derive/leaderboard_entries.sql",
        "sql/derive/leaderboard_slices.sql",
    ),
}
"""The files of this package that make each asset what it is, besides those it is made from."""


def code_version(asset: str, settings: Settings) -> str | None:
    """A hash of the prompts, queries and code that make the asset what it is."""
    if asset not in FILES:
        return None
    said = _SAID[asset](settings) if asset in _SAID else None
    return fingerprint(said, *(_text(PACKAGE / name) for name in FILES[asset]))


def data_version(warehouse: WarehouseResource, asset: str, **given: object) -> dg.DataVersion:
    """A hash of what the asset holds now: the same as before if nothing has changed.

    Without one Dagster would take it for unchanged as long as code and inputs are.
    """
    with warehouse.get_connection() as db:
        rows = query(db, f"versions/{asset}", given).fetchall()
    held: list[JsonValue] = [[str(cell) for cell in row] for row in rows]
    return dg.DataVersion(fingerprint(held))


@cache
def _text(path: Path) -> str:
    """Read once: for a process, its queries are as fixed as its code."""
    return path.read_text("utf-8")


def _reading(settings: Settings) -> JsonValue:
    return PROTOCOL


def _asking(settings: Settings) -> JsonValue:
    """What decides how models answer, besides the items."""
    experiment = settings.experiments[settings.experiment]
    decisive = {"temperature", "max_tokens", "web_search", "extra"}
    return {
        "prompts": _readable(lambda: Prompts.of(settings, experiment).hash),
        "parameters": experiment.model_dump(mode="json", include=decisive),
    }


def _judging(settings: Settings) -> JsonValue:
    """What decides about verdicts, besides the answers; not what only decides how fast."""
    judge, reviewer = settings.judge, settings.coding.reviewer
    asked = bool(judge.models)
    return {
        "protocol": PROTOCOL,
        "judges": list(judge.models),
        "max_tokens": judge.max_tokens if asked or reviewer else None,
        "prompt": _readable(lambda: read_prompt(settings, judge.prompt)) if asked else None,
        "schema": SCHEMA if asked or reviewer else None,
        "rules": judge.rules,
        "rules_version": None if judge.rules == "off" else RULES_VERSION,
        "reviewer": reviewer,
        "review_prompt": _text(REVIEW_PROMPT) if reviewer else None,
    }


def _analysing(settings: Settings) -> JsonValue:
    """What decides what an analyst says, besides the failures."""
    asked = settings.analysis
    return {
        "analyst": asked.model,
        "max_tokens": asked.max_tokens,
        "prompt": _text(ANALYSIS_PROMPT),
        "schema": ANALYSIS_SCHEMA,
    }


_SAID: Mapping[str, Callable[[Settings], JsonValue]] = {
    "dataset": _reading,
    "predictions": _asking,
    "judged": _judging,
    "run_reports": _analysing,
}


def _readable(read: Callable[[], str]) -> str:
    """A file that can not be read is told of by the run that needs it, not by loading the graph."""
    try:
        return read()
    except SettingsError:
        return UNREADABLE
