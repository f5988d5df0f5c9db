"""The plan for each model, and whether the budgets will do for all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eval_pipeline.errors import MendableError, RunError
from eval_pipeline.evaluation.budget import SpendTracker, estimate_usage, price_warning
from eval_pipeline.evaluation.catalog import known_models, look
from eval_pipeline.evaluation.estimate import (
    NO_CALLS,
    Coming,
    Estimate,
    Judging,
    Part,
    estimate,
    few,
)
from eval_pipeline.evaluation.grading import graders_of
from eval_pipeline.evaluation.predict import Launch, wanted_run
from eval_pipeline.evaluation.requests import RequestBuilder
from eval_pipeline.evaluation.reuse import RequestMatcher, ReusableReplies, Versions, find_reusable
from eval_pipeline.evaluation.runs import OpenRun, which_run
from eval_pipeline.evaluation.state import Pending, ReplyKey
from eval_pipeline.evaluation.usage import usual
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import PREDICTIONS, FileCompactedError, Journal
from eval_pipeline.records.item import Item
from eval_pipeline.records.model import Model
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import Mode, Run
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark


@dataclass(frozen=True)
class Limit:
    """A budget that a run draws on, and what is left of it; None for the run that is new."""

    purpose: str
    run_id: str | None
    model: str | None
    limit_usd: float
    left_usd: float


@dataclass(frozen=True)
class ModelPlan:
    """What would be asked of one model in which run; `why_not` if it would not be asked at all."""

    model: str
    simulated: bool
    experiment: str
    # The run that would go on; None if a new one would be opened.
    run_id: str | None = None
    items: int = 0
    samples: int = 1
    planned: int = 0
    done: int = 0
    carried: int = 0
    asking: Estimate = NO_CALLS
    judging: Estimate = NO_CALLS
    limits: tuple[Limit, ...] = ()
    warnings: tuple[str, ...] = ()
    why_not: str | None = None

    @property
    def cost_usd(self) -> float | None:
        """Of answers and verdicts together; None if part of it is unknown."""
        return self.asking.plus(self.judging).cost_usd

    @property
    def known_usd(self) -> float:
        """The same without what is unknown."""
        return (self.asking.cost_usd or 0.0) + (self.judging.cost_usd or 0.0)


@dataclass(frozen=True)
class BudgetCheck:
    """A budget, and what all models that draw on it would need."""

    limit: Limit
    needed_usd: float

    @property
    def holds(self) -> bool:
        return self.needed_usd <= max(self.limit.left_usd, 0.0)

    @property
    def share(self) -> float:
        """How much of the work it is enough for, from 0 to 1."""
        return 1.0 if self.holds else max(self.limit.left_usd, 0.0) / self.needed_usd


def check_budgets(plans: Iterable[ModelPlan]) -> list[BudgetCheck]:
    """Every budget that these plans draw on, with what they need of it together."""
    found: dict[tuple[str, str | None, str | None], BudgetCheck] = {}
    for plan in plans:
        for limit in plan.limits:
            key = (limit.purpose, limit.run_id, limit.model)
            known = found.get(key, BudgetCheck(limit, 0.0))
            found[key] = replace(known, needed_usd=known.needed_usd + plan.known_usd)
    return list(found.values())


def total(plans: Iterable[ModelPlan]) -> tuple[Estimate, Estimate]:
    """All answers and all verdicts; of the costs, what is known."""
    asking, judging = NO_CALLS, NO_CALLS
    for plan in plans:
        asking = asking.plus(plan.asking._replace(cost_usd=plan.asking.cost_usd or 0.0))
        judging = judging.plus(plan.judging._replace(cost_usd=plan.judging.cost_usd or 0.0))
    return asking, judging


NOTHING_CARRIED = ReusableReplies(frozenset(), {})


async def draw_up(
    settings: Settings,
    models: Sequence[Model],
    benchmark: Benchmark,
    launch: Launch,
    journal: Journal,
    *,
    judging: bool,
) -> list[ModelPlan]:
    """What the launch would ask each model and its judges; a model's trouble is told in its plan.

    The benchmark need not be journalled yet. For judges that nobody has seen yet, the gateways'
    lists are asked.
    """
    async with Gateways(settings) as gateways:
        judges = await _judging(settings, benchmark, launch, journal, gateways) if judging else None
        planner = _Planner(settings, benchmark, launch, journal, gateways, judges)
        return [await planner.plan(model) for model in models]


async def _judging(
    settings: Settings, benchmark: Benchmark, launch: Launch, journal: Journal, gateways: Gateways
) -> Judging:
    names = [*settings.judge.models, *settings.coding.reviewers]
    known = dict(known_models(journal))
    if not known.keys() >= set(names):
        listed = (await look(settings, journal)).catalog.models
        known = {model.id: model for model in listed} | known
    if missing := [name for name in names if name not in known]:
        raise RunError(
            f"The judge {missing[0]} is in no gateway's list; `evals models` shows them."
        )
    as_usual = replace(launch, mode=Mode.AUTO, only_failed=False)
    judges = [known[name] for name in settings.judge.models]
    return Judging(
        graders_of(judges, settings, gateways, as_usual.origin),
        next((known[name] for name in settings.coding.reviewers), None),
        as_usual,
        journal,
        benchmark,
    )


@dataclass
class _Planner:
    settings: Settings
    benchmark: Benchmark
    launch: Launch
    journal: Journal
    gateways: Gateways
    judging: Judging | None

    def __post_init__(self) -> None:
        self.versions = Versions(self.journal, self.benchmark)
        self.ledger = SpendTracker(self.settings.budget, self.journal)

    async def plan(self, model: Model) -> ModelPlan:
        """What would be asked of this model, or why nothing would."""
        try:
            if self._searches_the_web and not model.web_search:
                raise RunError(f"{model.id} is not asked: its gateway lists no web search.")
            asker = RequestBuilder.of(model, self.settings, self.gateways)
            return await in_a_thread(_undisturbed, partial(self._plan, asker))
        except MendableError as error:
            unasked = partial(self._unasked, model, str(error))
            return await in_a_thread(_undisturbed, unasked)

    def _plan(self, asker: RequestBuilder) -> ModelPlan:
        model, opened = asker.model, self._which(asker)
        run = opened.run
        carried = self._carried(asker, opened)
        rest = [number for number in opened.pending.numbers if number not in carried.replies]
        left = Pending(run.plan, rest)
        asking = self._estimate(asker, run, left)
        coming = Coming(run, carried, left)
        return ModelPlan(
            model=model.id,
            simulated=model.simulated,
            experiment=run.experiment,
            run_id=None if opened.is_new else run.run_id,
            items=len(run.plan),
            samples=run.samples,
            planned=run.planned,
            done=opened.done,
            carried=len(carried.replies),
            asking=asking,
            judging=self._judged(model, coming),
            limits=tuple(self._limits(opened, model)),
            warnings=tuple(self._warnings(asker, run, asking)),
        )

    def _unasked(self, model: Model, why_not: str) -> ModelPlan:
        """Its earlier answers may still have to be judged."""
        return ModelPlan(
            model=model.id,
            simulated=model.simulated,
            experiment=self.settings.experiment,
            judging=self._judged(model, None),
            why_not=why_not,
        )

    def _which(self, asker: RequestBuilder) -> OpenRun:
        """The run that the stage `predictions` would go on with or open."""
        launch = self.launch
        wanted, mode = wanted_run(asker, self.benchmark, launch, self.settings, self.journal)
        return which_run(self.journal, wanted, mode, run_id=launch.run_for(asker.model.id))

    def _carried(self, asker: RequestBuilder, opened: OpenRun) -> ReusableReplies:
        run = opened.run
        if not run.carry_from or not opened.pending:
            return NOTHING_CARRIED
        items = self.versions.items(run.benchmark_version)

        def request_hash(reply: ReplyKey) -> str:
            return asker.request_hash(items[reply.key], reply.sample)

        alike = RequestMatcher(run, self.versions, request_hash)
        return find_reusable(self.journal, run, opened.pending, alike, self.versions)

    def _estimate(self, asker: RequestBuilder, run: Run, left: Pending) -> Estimate:
        items, model = self.versions.items(run.benchmark_version), asker.model
        by_suite = left.by_suite()
        known = usual(self.journal, PREDICTIONS, model.id, by_suite)
        parts = [
            Part(len(some), [_guessed(asker, items[one.key]) for one in few(some)], known[suite])
            for suite, some in by_suite.items()
        ]
        return estimate(parts, model.prices, "answers")

    def _judged(self, model: Model, coming: Coming | None) -> Estimate:
        return self.judging.estimate(model.id, coming) if self.judging else NO_CALLS

    def _limits(self, opened: OpenRun, model: Model) -> Iterator[Limit]:
        run = opened.run
        for purse in self.ledger.run_budget(run.run_id, model.id).limits:
            yield Limit(
                purse.purpose,
                None if opened.is_new or purse.purpose == "day" else run.run_id,
                model.id if purse.purpose == "model" else None,
                purse.limit_usd,
                purse.limit_usd - purse.spent_usd,
            )

    def _warnings(self, asker: RequestBuilder, run: Run, asking: Estimate) -> Iterator[str]:
        model = asker.model
        yield from asker.warnings(self.settings, run.samples)
        if asking.cost_usd is None and not price_warning(model, self.settings.budget):
            yield f"{model.id}: no price is known, so its answers are not in the cost."
        if self.judging is not None and self.judging.lacks_a_judge(run):
            yield f"{model.id}: answers to questions need a judge: name one in judge.model."

    @property
    def _searches_the_web(self) -> bool:
        return self.settings.experiments[self.settings.experiment].web_search


def _guessed(asker: RequestBuilder, item: Item) -> Usage:
    """What asking it will use, if nothing better is known than its length."""
    model = asker.model
    limits = (asker.experiment.max_tokens, model.max_output_tokens)
    return estimate_usage(
        ChatRequest(
            model=model.request_name,
            messages=asker.prompts.messages(item, model),
            max_tokens=min(filter(None, limits), default=None),
        )
    )


def _undisturbed(work: Callable[[], ModelPlan]) -> ModelPlan:
    """Others may be at work: what they compact meanwhile is read again."""
    while True:
        try:
            return work()
        except FileCompactedError:
            continue
