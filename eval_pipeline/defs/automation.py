"""Automation conditions of assets, and the schedule that evaluates models when they are due."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from textwrap import shorten
from typing import Any

import dagster as dg

from eval_pipeline.defs.partitions import MODELS, models_named, unfinished_runs
from eval_pipeline.evaluation.catalog import known_models
from eval_pipeline.evaluation.schedule import Decision, decide, for_people, standings, summed_up
from eval_pipeline.journal import ATTEMPTS, SIGHTINGS, Journal, ReadOnlyError
from eval_pipeline.journal.deployment import open_journal, refuse_production
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.loading import SettingsError
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


DUE = "evals/due"
"""The tag of a run that the schedule requested: why."""
LONGEST_TAG = 63
FOR_ALL = {"evaluate_all", "fix_evaluation"}
NOBODY = (
    "No model is selected yet, so none can be due. To fetch the catalog: dagster asset "
    "materialize --select model_catalog (or the job refresh_catalog)."
)


def build_schedules(settings: Settings) -> dg.Definitions:
    """Build the schedule; it runs by itself only where the settings allow to spend money."""
    try:
        return dg.Definitions(schedules=[_due_models(settings)])
    except dg.DagsterInvalidDefinitionError:
        raise SettingsError(
            "eval_pipeline.toml: automation.schedule: must be a cron line, such as 0 */4 * * *; "
            f"got '{settings.automation.schedule}'."
        ) from None


def _due_models(settings: Settings) -> dg.ScheduleDefinition:
    @dg.schedule(
        job_name="evaluate",
        cron_schedule=settings.automation.schedule,
        execution_timezone="UTC",
        default_status=dg.DefaultScheduleStatus.RUNNING
        if settings.automation.evaluate
        else dg.DefaultScheduleStatus.STOPPED,
        description="Requests one run for each model that is due: never evaluated, or long enough "
        "ago for its age and for what a run costs. The tick's log says why or why not.",
    )
    def due_models(
        context: dg.ScheduleEvaluationContext,
    ) -> list[dg.RunRequest] | dg.SkipReason:
        moment = context.scheduled_execution_time
        try:
            refuse_production(settings)
        except ReadOnlyError as error:
            return dg.SkipReason(str(error))
        decisions = decide_all(settings, context.instance, moment)
        for row in for_people(decisions):
            context.log.info("%s: %s", row.model, row.reason)
        requests = [_request(one, moment) for one in decisions if one.due]
        if requests:
            return requests
        return dg.SkipReason(summed_up(decisions) if decisions else NOBODY)

    return due_models


def decide_all(
    settings: Settings, instance: dg.DagsterInstance, moment: datetime
) -> list[Decision]:
    """Return what the schedule decides at `moment` about every model that is a partition."""
    models = instance.get_dynamic_partitions(MODELS)
    if not models:
        return []
    # Before the facts: a run that ends meanwhile is busy, and not due a second time.
    busy = busy_models(instance, models, settings.experiment)
    warehouse = Warehouse(settings.database, open_journal(settings))
    # A run that was killed has published nothing, and was an attempt all the same. The rest would
    # take longer than Dagster waits for a tick.
    warehouse.publish(SIGHTINGS, ATTEMPTS)
    with warehouse.reading() as db:
        found = standings(
            db,
            settings.experiment,
            models,
            busy,
            filtered=settings.plan.narrows,
            barred=_barred(settings, warehouse.journal),
        )
    return [decide(one, moment) for one in found]


def busy_models(
    instance: dg.DagsterInstance, models: Sequence[str], experiment: str
) -> dict[str, str]:
    """Return the models that unfinished runs ask under the experiment, each with a run's id."""
    unfinished = unfinished_runs(instance)
    asking = [run for run in unfinished if _experiment(run.run_config) in (None, experiment)]
    return {
        model: run.run_id
        for run in asking
        for model in (models if run.job_name in FOR_ALL else models_named(run.tags, models))
    }


def _experiment(config: Mapping[str, Any]) -> str | None:
    """Return the experiment of a run, if its config names one."""
    ops = config.get("ops") or {}
    for_one = (ops.get("predictions") or {}).get("config") or {}
    for_all = (ops.get("every_model") or {}).get("config") or {}
    found = (for_one or for_all.get("predictions") or {}).get("experiment")
    return None if found is None else str(found)


def _barred(settings: Settings, journal: Journal) -> dict[str, str]:
    """Return models that a run would not ask, and so leave as due as they were."""
    if not settings.experiments[settings.experiment].web_search:
        return {}
    models = known_models(journal).values()
    return {one.id: "its gateway lists no web search" for one in models if not one.web_search}


def _request(decision: Decision, moment: datetime) -> dg.RunRequest:
    return dg.RunRequest(
        # The same tick, evaluated again after a crash, requests nothing twice.
        run_key=f"{decision.model} {moment:%Y-%m-%dT%H:%M:%S%z}",
        partition_key=decision.model,
        tags={DUE: shorten(decision.reason, LONGEST_TAG, placeholder=" …")},
    )
