"""Runs: which items a run covers, which run is continued, what is left to ask in it."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from eval_pipeline.benchmark import Benchmark
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records import (
    Item,
    ItemKey,
    Model,
    PlanFilter,
    Prediction,
    Run,
    Scope,
    now,
)
from eval_pipeline.settings import Experiment


class Mode(StrEnum):
    """What a materialization does with the work that is there already."""

    AUTO = "auto"
    RESUME = "resume"
    FIX = "fix"
    FRESH = "fresh"


class RunError(Exception):
    """What was asked for can not be done; the message says what to do instead."""


@dataclass(frozen=True)
class OpenRun:
    """A run with what is left to ask in it."""

    run: Run
    pending: tuple[ItemKey, ...]

    @property
    def done(self) -> int:
        return len(self.run.plan) - len(self.pending)


def choose(
    items: Mapping[ItemKey, Item], model: Model, chosen: PlanFilter
) -> tuple[tuple[ItemKey, ...], Scope]:
    """The plan for a model: its items in the data set's order, and how much of it they are."""
    wanted = [key for key, item in items.items() if _matches(item, chosen)]
    if chosen.max_samples is not None:
        wanted = _first_of_each_suite(wanted, chosen.max_samples)
    plan = tuple(key for key in wanted if model.sees_images or not items[key].image)
    return plan, _scope(plan, items)


def _scope(plan: tuple[ItemKey, ...], items: Mapping[ItemKey, Item]) -> Scope:
    if len(plan) == len(items):
        return Scope.FULL
    without_image = [key for key, item in items.items() if not item.image]
    return Scope.TEXT if list(plan) == without_image else Scope.FILTERED


def new_run(
    run_id: str,
    model: Model,
    benchmark: Benchmark,
    chosen: PlanFilter,
    *,
    experiment_name: str,
    experiment: Experiment,
    system_prompt_hash: str,
) -> Run:
    """The run that would be opened now; comparing it to earlier ones tells which can go on."""
    chosen = PlanFilter(**chosen.model_dump())
    plan, scope = choose(benchmark.items, model, chosen)
    if not plan:
        raise RunError(
            f"Nothing to ask {model.id}: no item passes the filter {chosen.model_dump_json()}"
            + ("." if model.sees_images else " that the model can read (it sees no images).")
        )
    return Run(
        run_id=run_id,
        model=model.id,
        experiment=experiment_name,
        benchmark_version=benchmark.version.benchmark_version,
        plan=plan,
        plan_filter=chosen,
        scope=scope,
        parameters={
            **experiment.model_dump(mode="json", exclude={"system_prompt"}),
            "system_prompt_hash": system_prompt_hash,
            "gateway": model.gateway,
        },
        simulated=model.simulated,
        opened_at=now(),
    )


def open_run(
    journal: Journal,
    wanted: Run,
    mode: Mode,
    *,
    run_id: str | None = None,
    retry_of: str | None = None,
) -> OpenRun:
    """Continues the run that is meant, or opens `wanted` as a new one."""
    run = _find(journal, wanted, mode, run_id, retry_of)
    if run is not None:
        opened = OpenRun(run, _pending(journal, run, failed_too=mode is not Mode.RESUME))
        chosen = mode in (Mode.RESUME, Mode.FIX) or run_id is not None
        if chosen or run.run_id == wanted.run_id or opened.pending or not _is_judged(journal, run):
            return opened
    if mode is not Mode.FRESH:
        wanted = wanted.model_copy(update={"carry_from": _predecessor(journal, wanted)})
    journal.write_whole(RUNS, wanted.model, wanted.run_id, records=[wanted])
    return OpenRun(wanted, wanted.plan)


def latest(predictions: Iterable[Prediction]) -> dict[ItemKey, Prediction]:
    """The last word on each item."""
    found: dict[ItemKey, Prediction] = {}
    for prediction in predictions:
        known = found.get(prediction.key)
        if known is None or known.finished_at <= prediction.finished_at:
            found[prediction.key] = prediction
    return found


def _predecessor(journal: Journal, wanted: Run) -> str | None:
    """For the first run of a benchmark version: the run of an older one that it carries over."""
    runs = sorted(journal.read(RUNS, wanted.model), key=lambda run: run.opened_at, reverse=True)
    alike = [
        run
        for run in runs
        if (run.experiment, run.parameters) == (wanted.experiment, wanted.parameters)
    ]
    if any(run.benchmark_version == wanted.benchmark_version for run in alike):
        return None
    return alike[0].run_id if alike else None


def _find(
    journal: Journal, wanted: Run, mode: Mode, run_id: str | None, retry_of: str | None
) -> Run | None:
    runs = sorted(journal.read(RUNS, wanted.model), key=lambda run: run.opened_at, reverse=True)
    # A step or a Dagster run that is tried again goes on with what it opened the first time.
    for run in runs:
        if run.run_id == wanted.run_id or (run.run_id == retry_of and run.matches(wanted)):
            return run
    if run_id is not None:
        return _named(runs, run_id, wanted)
    if mode is Mode.FRESH:
        return None
    return next((run for run in runs if run.matches(wanted)), None)


def _named(runs: list[Run], run_id: str, wanted: Run) -> Run:
    """The newest run whose id begins so."""
    for run in runs:
        if run.run_id.startswith(run_id):
            return _asked_the_same_way(run, wanted)
    known = ", ".join(run.run_id[:8] for run in runs[:5]) or "none"
    raise RunError(f"{wanted.model} has no run {run_id}; its latest runs: {known}.")


def _asked_the_same_way(run: Run, wanted: Run) -> Run:
    if (run.experiment, run.parameters) != (wanted.experiment, wanted.parameters):
        raise RunError(
            f"Run {run.run_id[:8]} was made under the experiment '{run.experiment}' with "
            f"{run.parameters}; continue it with the same, or open a fresh one."
        )
    return run


def _pending(journal: Journal, run: Run, *, failed_too: bool) -> tuple[ItemKey, ...]:
    known = latest(journal.read(PREDICTIONS, run.model, run.run_id))
    return tuple(
        key
        for key in run.plan
        if key not in known or (failed_too and not known[key].outcome.is_result)
    )


def _is_judged(journal: Journal, run: Run) -> bool:
    """Whether one judge scored every item. Until then a new run would pay again for this one."""
    scored: dict[tuple[str, str], set[ItemKey]] = {}
    for judgement in journal.read(JUDGED, run.model, run.run_id):
        if judgement.score is not None:
            by = (judgement.judge, judgement.judge_version)
            scored.setdefault(by, set()).add(ItemKey(judgement.suite, judgement.item_id))
    return any(items.issuperset(run.plan) for items in scored.values())


def _matches(item: Item, chosen: PlanFilter) -> bool:
    if chosen.categories and item.category not in chosen.categories:
        return False
    if chosen.text_only and item.image:
        return False
    path = f"{item.suite}/{item.category}/{item.id}"
    return not chosen.test_filter or re.search(chosen.test_filter, path) is not None


def _first_of_each_suite(keys: list[ItemKey], count: int) -> list[ItemKey]:
    seen: dict[str, int] = {}
    kept = []
    for key in keys:
        seen[key.suite] = seen.get(key.suite, 0) + 1
        if seen[key.suite] <= count:
            kept.append(key)
    return kept
