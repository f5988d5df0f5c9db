"""Code versions and data versions of the assets."""

from collections.abc import Callable, Mapping

import dagster as dg
from pydantic import JsonValue

from eval_pipeline.analysis.analyst import PROMPT as ANALYSIS_PROMPT
from eval_pipeline.analysis.analyst import SCHEMA as ANALYSIS_SCHEMA
from eval_pipeline.defs.resources import WarehouseResource
from eval_pipeline.evaluation.grading import REVIEW_PROMPT
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.item import PROTOCOL
from eval_pipeline.results.queries import query, recipe
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.exam.judge import SCHEMA
from eval_pipeline.suites.exam.rules.grading import RULES_VERSION
from eval_pipeline.suites.kinds import Prompts, read_prompt

UNREADABLE = "unreadable"
CATALOG = dg.DataVersion("each model is a partition")
"""That of the catalog, whatever it lists.

Of an asset without partitions Dagster can not tell whom a change concerns: a new price of one
model would make the replies of all look out of date. A new model has none: they are missing.
"""

VERSIONS: Mapping[str, int] = {
    "dataset": 1,
    "model_catalog": 1,
    "predictions": 1,
    "judged": 1,
    "judge_reliability": 1,
    "run_reports": 1,
    "metrics": 1,
    "comparisons": 1,
    "leaderboard": 1,
}
"""The version of each asset's code: raise it if the same inputs now give another asset.

A formula that several assets share has `queries.FORMULAS_VERSION`, which also rebuilds the file.
"""
COMPUTED = frozenset({"judge_reliability", "metrics", "comparisons", "leaderboard"})
"""The assets that SQL and formulas compute: out of date when either changes."""


def code_version(asset: str, settings: Settings) -> str:
    """Return the asset's explicit version with a hash of its prompts, settings and SQL."""
    said = _SAID[asset](settings) if asset in _SAID else None
    computed = recipe() if asset in COMPUTED else ()
    return f"{VERSIONS[asset]}-{fingerprint(said, *computed)}"


def data_version(warehouse: WarehouseResource, asset: str, **given: object) -> dg.DataVersion:
    """A hash of what the asset holds now: the same as before if nothing has changed.

    Without one Dagster would take it for unchanged as long as code and inputs are.
    """
    with warehouse.get_connection() as db:
        rows = query(db, f"versions/{asset}", given).fetchall()
    held: list[JsonValue] = [[str(cell) for cell in row] for row in rows]
    return dg.DataVersion(fingerprint(held))


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
        "review_prompt": REVIEW_PROMPT.read_text("utf-8") if reviewer else None,
    }


def _analysing(settings: Settings) -> JsonValue:
    """What decides what an analyst says, besides the failures."""
    asked = settings.analysis
    return {
        "analyst": asked.model,
        "max_tokens": asked.max_tokens,
        "prompt": ANALYSIS_PROMPT.read_text("utf-8"),
        "schema": ANALYSIS_SCHEMA,
    }


_SAID: Mapping[str, Callable[[Settings], JsonValue]] = {
    "dataset": lambda _: PROTOCOL,
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
