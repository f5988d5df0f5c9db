"""Conditions: what follows by itself when something upstream has changed."""

from typing import Any

import dagster as dg

from eval_pipeline.settings.settings import Settings

SEES_TO_THE_REST = "evals/sees_to_the_rest"
"""The tag of a run of a job that computes results itself: no condition has to."""

Condition = dg.AutomationCondition[Any]
RESULTS = ("metrics", "comparisons", "leaderboard")


def build_automation(settings: Settings) -> dg.Definitions:
    """The sensor that looks at all conditions; what they may start, the settings say."""
    follow = dg.AutomationConditionSensorDefinition(
        "follow",
        target=dg.AssetSelection.all(),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Computes results anew when verdicts have changed or how they are computed; "
        "judges new answers if automation.judge says so, or if judging costs nothing; "
        "analyses failures if automation.analyse says so.",
    )
    return dg.Definitions(sensors=[follow])


def condition(asset: str, settings: Settings) -> Condition | None:
    """When the asset is materialized without anybody asking for it; None for never."""
    if asset in RESULTS:
        changed = dg.AutomationCondition.code_version_changed()
        return _when_free(_once(_updated() | changed) | _missing(), "results follow verdicts")
    # The settings allow for what judging costs, or it costs nothing.
    judging = settings.automation.judge or not (settings.judge.models or settings.coding.reviewers)
    if asset == "judged" and judging:
        return _when_free(_once(_updated()), "verdicts follow answers")
    if asset == "run_reports" and settings.automation.analyse:
        return _when_free(_once(_updated(also_by_jobs=True)), "reports follow verdicts")
    return None


def _once(change: Condition) -> Condition:
    """One request per change, whatever comes of it.

    Only a request settles it, and not, as in `eager`, any materialization: that may have begun
    before the change, or be about another model.
    """
    return change.since(dg.AutomationCondition.newly_requested())


def _when_free(wanted: Condition, label: str) -> Condition:
    """Not while the asset is in progress; other models, missing or in progress, do not matter."""
    return (wanted & ~dg.AutomationCondition.in_progress()).with_label(label)


def _updated(*, also_by_jobs: bool = False) -> Condition:
    """Something upstream is new, by a run that does not itself go on to this asset."""
    alone = (
        dg.AutomationCondition.newly_updated() & ~dg.AutomationCondition.executed_with_root_target()
    )
    if not also_by_jobs:
        # What a job's run goes on to, Dagster does not tell.
        tagged = dg.AutomationCondition.executed_with_tags(tag_keys={SEES_TO_THE_REST})
        alone = alone & ~tagged
    requested = dg.AutomationCondition.will_be_requested()
    return dg.AutomationCondition.any_deps_match(alone | requested).with_label("upstream is new")


def _missing() -> Condition:
    """It can be computed, and nobody has: asked for once, not until it succeeds."""
    missing = dg.AutomationCondition.missing()
    possible = ~dg.AutomationCondition.any_deps_missing()
    return (_once((missing & possible).newly_true()) & missing).with_label("missing")
