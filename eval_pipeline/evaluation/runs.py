"""Runs: their items, which run is continued, and what is left to ask in it."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from eval_pipeline.errors import NothingFailedError, RunError
from eval_pipeline.evaluation.requests import RequestBuilder
from eval_pipeline.evaluation.state import (
    PAST_RUNS,
    Pending,
    earlier_runs,
    failed_items,
    find_pending,
    is_judged,
    read_run,
)
from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import RUNS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.item import ExamQuestion, Item, ItemKey
from eval_pipeline.records.model import Model
from eval_pipeline.records.run import FAILED_THERE, IMPORTED_FROM, Mode, PlanFilter, Run, Scope
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.settings.sections import Plan
from eval_pipeline.suites.benchmark import Benchmark, past_items
from eval_pipeline.suites.items import briefs
from eval_pipeline.suites.listing import planned


@dataclass(frozen=True)
class OpenRun:
    """A run with what is left to ask in it."""

    run: Run
    pending: Pending
    is_new: bool = False

    @property
    def done(self) -> int:
        return self.run.planned - len(self.pending)


class Failed(NamedTuple):
    """The items that were wrong or had no result in a run."""

    run_id: str
    items: Collection[ItemKey]
    # Whether they are being asked anew already, in a run that was interrupted.
    begun: bool = False


def choose(
    items: Mapping[ItemKey, Item], model: Model, chosen: PlanFilter, failed: Failed | None = None
) -> tuple[tuple[ItemKey, ...], Scope]:
    """Return the plan for a model, in the data set's order, and how much of it that is."""
    plan = tuple(
        brief.key
        for brief in planned(items, chosen)
        if (model.sees_images or not brief.has_image)
        and (failed is None or brief.key in failed.items)
    )
    return plan, scope_of(plan, items)


def scope_of(plan: Sequence[ItemKey], items: Mapping[ItemKey, Item]) -> Scope:
    """Return how much of these items a plan covers."""
    if len(plan) == len(items):
        return Scope.FULL
    without_image = (brief.key for brief in briefs(items) if not brief.has_image)
    same = all(one == other for one, other in zip_longest(plan, without_image))
    return Scope.TEXT if same else Scope.FILTERED


CODING_PROMPT = "coding_prompt_hash"
"""The parameter that only runs with coding tasks have."""
EXAM_GUIDELINES = "exam_guidelines_hashes"
"""The parameter that only runs have whose questions are asked with guidelines."""


def new_run(
    run_id: str,
    builder: RequestBuilder,
    benchmark: Benchmark,
    chosen: Plan,
    *,
    experiment_name: str,
    failed: Failed | None = None,
) -> Run:
    """Return the run that would be opened now, to be compared with earlier ones."""
    model, experiment, prompts = builder.model, builder.experiment, builder.prompts
    # The number of samples does not belong to the filter.
    plan_filter = PlanFilter(**chosen.model_dump(include=set(PlanFilter.model_fields)))
    plan, scope = choose(benchmark.items, model, plan_filter, failed)
    if failed is not None and not plan:
        raise NothingFailedError(f"{model.id}: nothing failed in run {failed.run_id[:8]}.")
    if not plan:
        raise RunError(
            f"Nothing to ask {model.id}: no item passes the filter {plan_filter.model_dump_json()}"
            + ("." if model.sees_images else " that the model can read (it sees no images).")
        )
    suites, hashes = {key.suite for key in plan}, prompts.exam_guidelines_hashes
    guided = {suite: told for suite, told in hashes.items() if suite in suites}
    has_code = not suites.isdisjoint(benchmark.version.coding_suites)
    always = {"temperature", "max_tokens", "stream", "extra"}
    run = Run(
        run_id=run_id,
        model=model.id,
        experiment=experiment_name,
        benchmark_version=benchmark.version.benchmark_version,
        plan=(),
        plan_filter=plan_filter,
        scope=scope,
        parameters={
            **experiment.model_dump(mode="json", include=always),
            "system_prompt_hash": fingerprint(prompts.exam),
            "gateway": model.gateway,
            # Named only where they are special, so that earlier runs are still the same.
            **({} if model.dialect == "chat_completions" else {"dialect": model.dialect}),
            **({"web_search": True} if experiment.web_search else {}),
            **({CODING_PROMPT: prompts.coding_hash} if has_code else {}),
            **({EXAM_GUIDELINES: guided} if guided else {}),
        },
        simulated=model.simulated,
        opened_at=now(),
        samples=chosen.samples,
        failed_of=failed and failed.run_id,
    )
    # Not validated: that would make a second key for every item.
    return run.model_copy(update={"plan": plan})


def failed_in_latest(
    journal: Journal, model: Model, experiment: str, *, but: Collection[str | None] = ()
) -> Failed:
    """Return what failed in the model's latest run under this experiment, except these runs."""
    past = [
        run
        for run in journal.read(PAST_RUNS, model.id)
        if run.experiment == experiment and run.run_id not in but
    ]
    if not past:
        raise RunError(f"{model.id} has no run under '{experiment}' yet: evals run -m {model.id}")
    latest = max(past, key=lambda run: run.opened_at)
    whole = read_run(journal, model.id, latest.run_id)
    if whole.failed_of is not None and find_pending(journal, whole):
        return Failed(whole.failed_of, frozenset(whole.plan), begun=True)
    return Failed(whole.run_id, failed_items(journal, whole))


def open_run(
    journal: Journal,
    wanted: Run,
    mode: Mode,
    *,
    run_id: str | None = None,
    retry_of: str | None = None,
    dry_run: bool = False,
) -> OpenRun:
    """Continue the run that is meant, or open `wanted` as a new one; a dry run writes nothing."""
    earlier = earlier_runs(journal, wanted)
    run = _find(earlier, wanted, mode, run_id, retry_of)
    if run is not None:
        if run.plan is not wanted.plan:
            run = read_run(journal, run.model, run.run_id)
        found = OpenRun(run, find_pending(journal, run, failed_too=mode is not Mode.RESUME))
        chosen = mode in (Mode.RESUME, Mode.FIX) or run_id is not None
        if chosen or run.run_id == wanted.run_id or found.pending or not is_judged(journal, run):
            return found
    if mode is not Mode.FRESH:
        wanted = wanted.model_copy(update={"carry_from": _ancestors(journal, earlier, wanted)})
    if not dry_run:
        journal.write_whole(RUNS, wanted.model, wanted.run_id, records=[wanted])
    return OpenRun(wanted, Pending(wanted.plan, range(wanted.planned)), is_new=True)


def _ancestors(journal: Journal, earlier: list[Run], wanted: Run) -> tuple[str, ...]:
    """Return the runs whose answers a new one reuses, those with most of its replies first.

    None where it repeats a run that has them all: that is meant to be asked anew.
    """
    left: dict[str, int] = {}
    for run in earlier:
        if (run.experiment, run.parameters) == (wanted.experiment, wanted.parameters):
            # Also those that have none: they may go on before this run does.
            left[run.run_id] = len(find_pending(journal, run, wanted))
            is_same = (run.benchmark_version, run.plan) == (wanted.benchmark_version, wanted.plan)
            if not left[run.run_id] and is_same and run.samples >= wanted.samples:
                return ()
    return tuple(sorted(left, key=left.__getitem__))


def _find(
    runs: list[Run], wanted: Run, mode: Mode, run_id: str | None, retry_of: str | None
) -> Run | None:
    # A step or a Dagster run that is tried again goes on with what it opened the first time.
    for run in runs:
        if run.run_id == wanted.run_id or (run.run_id == retry_of and run.matches(wanted)):
            return run
    if run_id is not None:
        for run in runs:  # the newest first
            if run.run_id.startswith(run_id):
                return _asked_the_same_way(run, wanted)
        known = ", ".join(run.run_id[:8] for run in runs[:5]) or "none"
        raise RunError(f"{wanted.model} has no run {run_id}; its latest runs: {known}.")
    if mode is Mode.FRESH:
        return None
    return next((run for run in runs if run.matches(wanted)), None)


def _asked_the_same_way(run: Run, wanted: Run) -> Run:
    """Return the run, unless going on with it would mix answers to different requests."""
    names = run.parameters.keys() | wanted.parameters.keys()
    # The prompt for code plays no part in a run that has none.
    names -= {CODING_PROMPT} - run.parameters.keys()
    if run.is_imported:  # what was not told can not be compared
        names = run.parameters.keys() - {IMPORTED_FROM, FAILED_THERE}
    changed = {name for name in names if run.parameters.get(name) != wanted.parameters.get(name)}
    if run.experiment != wanted.experiment:
        changed.add("experiment")
    if changed:
        raise RunError(
            f"Run {run.run_id[:8]} of {run.model} was begun under the experiment "
            f"'{run.experiment}' with another {' and another '.join(sorted(changed))} than now; "
            "go on with the same, or open a fresh one."
        )
    return run


def refuse_without_text(run: Run, items: Mapping[ItemKey, Item]) -> None:
    """Raise if the run was imported without the text of its questions."""
    if not _has_text(items[run.plan[0]]):
        raise untold_error(run)


def untold(journal: Journal, found: Iterable[FoundRun]) -> Iterator[Run]:
    """Yield those of them that were imported without the text of their questions."""

    @cache  # Many models of one launch were asked the same questions, which may be large.
    def has_text(version: str, key: ItemKey) -> bool:
        return _has_text(past_items(journal, version)[key])

    for one in found:
        run = read_run(journal, one.model, one.run_id)
        if run.is_imported and not has_text(run.benchmark_version, run.plan[0]):
            yield run


def untold_error(run: Run) -> RunError:
    """Return the error that says how to get the text of the questions."""
    name = run.run_id[:8]
    return RunError(
        f"Run {name} of {run.model} was imported without the text of its questions: name the "
        "suite that has them under [[suites]] in eval_pipeline.toml (for Humanity's Last Exam "
        f'hub = {{ repository = "cais/hle", … }}), then evals delete {name}, and import again.'
    )


def _has_text(item: Item) -> bool:
    return not isinstance(item, ExamQuestion) or bool(item.question)
