"""The plan for each model, and whether the budgets will do for all of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from eval_pipeline.errors import MendableError, RunError
from eval_pipeline.evaluation.budget import SpendTracker, price_warning
from eval_pipeline.evaluation.catalog import known_models, look
from eval_pipeline.evaluation.estimate import NO_CALLS, Estimate, estimate_answers
from eval_pipeline.evaluation.grading import graders_of
from eval_pipeline.evaluation.predict import Launch, open_wanted
from eval_pipeline.evaluation.requests import RequestBuilder
from eval_pipeline.evaluation.reuse import NOTHING_REUSED, Versions, find_reusable
from eval_pipeline.evaluation.runs import OpenRun
from eval_pipeline.evaluation.state import Pending, repeat_if_compacted
from eval_pipeline.evaluation.verdict_plan import FutureReplies, Judging
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import Journal
from eval_pipeline.records.model import Model
from eval_pipeline.records.run import Mode, Run
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import Benchmark


@dataclass(frozen=True)
class Limit:
    """A budget, what is left of it, and what is needed of it; `run_id` is None for a new run."""

    purpose: str
    run_id: str | None
    model: str | None
    limit_usd: float
    left_usd: float
    needed_usd: float = 0.0

    @property
    def holds(self) -> bool:
        return self.needed_usd <= max(self.left_usd, 0.0)

    @property
    def share(self) -> float:
        """The share of the work that it is enough for, from 0 to 1."""
        return 1.0 if self.holds else max(self.left_usd, 0.0) / self.needed_usd


@dataclass(frozen=True)
class ModelPlan:
    """What would be asked of one model in which run; `why_not` if it would not be asked at all."""

    model: str
    simulated: bool
    experiment: str
    # The run that would be continued; None if a new one would be opened.
    run_id: str | None = None
    items: int = 0
    samples: int = 1
    planned: int = 0
    answered: int = 0
    carried: int = 0
    asking: Estimate = NO_CALLS
    judging: Estimate = NO_CALLS
    limits: tuple[Limit, ...] = ()
    warnings: tuple[str, ...] = ()
    why_not: str | None = None

    @property
    def cost_usd(self) -> float | None:
        """The cost of answers and verdicts; None if part of it is unknown."""
        return (self.asking + self.judging).cost_usd

    @property
    def known_usd(self) -> float:
        """The same without what is unknown."""
        return (self.asking.cost_usd or 0.0) + (self.judging.cost_usd or 0.0)


def check_budgets(plans: Iterable[ModelPlan]) -> list[Limit]:
    """Return every budget that these plans draw on, with what they need of it together."""
    found: dict[tuple[str, str | None, str | None], Limit] = {}
    for plan in plans:
        for limit in plan.limits:
            known = found.setdefault((limit.purpose, limit.run_id, limit.model), limit)
            needed_usd = known.needed_usd + plan.known_usd
            found[limit.purpose, limit.run_id, limit.model] = replace(known, needed_usd=needed_usd)
    return list(found.values())


def total(plans: Sequence[ModelPlan]) -> tuple[Estimate, Estimate]:
    """Return all answers and all verdicts; of the costs, those that are known."""

    def add_up(estimates: Iterable[Estimate]) -> Estimate:
        return sum((replace(one, cost_usd=one.cost_usd or 0.0) for one in estimates), NO_CALLS)

    return add_up(plan.asking for plan in plans), add_up(plan.judging for plan in plans)


async def draw_up(
    settings: Settings,
    models: Sequence[Model],
    benchmark: Benchmark,
    launch: Launch,
    journal: Journal,
    *,
    judging: bool,
) -> list[ModelPlan]:
    """Return what the launch would ask each model and its judges, or why it would not.

    The benchmark need not be journalled yet. For judges that are not known yet, the gateways'
    lists are requested.
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
        self.spend = SpendTracker(self.settings.budget, self.journal)

    async def plan(self, model: Model) -> ModelPlan:
        """Return what would be asked of this model, or why nothing would."""
        try:
            searches = self.settings.experiments[self.settings.experiment].web_search
            if searches and not model.web_search:
                raise RunError(f"{model.id} is not asked: its gateway lists no web search.")
            self.gateways.provider(model)  # without its key it would not be asked
            builder = RequestBuilder.of(model, self.settings)
            return await in_a_thread(self._plan, builder)
        except MendableError as error:
            return await in_a_thread(self._unasked, model, str(error))

    @repeat_if_compacted
    def _plan(self, builder: RequestBuilder) -> ModelPlan:
        model, shared = builder.model, (self.benchmark, self.launch, self.settings, self.journal)
        opened = open_wanted(builder, *shared, dry_run=True)
        run, pending, reused = opened.run, opened.pending, NOTHING_REUSED
        items = self.versions.benchmark(run.benchmark_version).items
        if run.carry_from and pending:
            hash_of = builder.reply_hash(items)
            reused = find_reusable(self.journal, run, pending, hash_of, self.versions)
        left = Pending(run.plan, [one for one in pending.numbers if one not in reused.replies])
        asking = estimate_answers(self.journal, builder, left, items)
        return ModelPlan(
            model=model.id,
            simulated=model.simulated,
            experiment=run.experiment,
            run_id=None if opened.is_new else run.run_id,
            items=len(run.plan),
            samples=run.samples,
            planned=run.planned,
            answered=opened.done,
            carried=len(reused.replies),
            asking=asking,
            judging=self._verdicts(model, FutureReplies(run, reused, left)),
            limits=tuple(self._limits(opened, model)),
            warnings=tuple(self._warnings(builder, run, asking)),
        )

    @repeat_if_compacted
    def _unasked(self, model: Model, why_not: str) -> ModelPlan:
        """Return the plan of a model whose earlier answers may still have to be judged."""
        return ModelPlan(
            model=model.id,
            simulated=model.simulated,
            experiment=self.settings.experiment,
            judging=self._verdicts(model, None),
            why_not=why_not,
        )

    def _verdicts(self, model: Model, future: FutureReplies | None) -> Estimate:
        return self.judging.estimate(model.id, future) if self.judging else NO_CALLS

    def _limits(self, opened: OpenRun, model: Model) -> Iterator[Limit]:
        run = opened.run
        for limit in self.spend.run_budget(run.run_id, model.id).limits:
            yield Limit(
                limit.purpose,
                None if opened.is_new or limit.purpose == "day" else run.run_id,
                model.id if limit.purpose == "model" else None,
                limit.limit_usd,
                limit.limit_usd - limit.spent_usd,
            )

    def _warnings(self, builder: RequestBuilder, run: Run, asking: Estimate) -> Iterator[str]:
        model = builder.model
        yield from builder.warnings(self.settings, run.samples)
        if asking.cost_usd is None and not price_warning(model, self.settings.budget):
            yield f"{model.id}: no price is known, so its answers are not in the cost."
        if self.judging is not None and self.judging.lacks_a_judge(run):
            yield f"{model.id}: answers to questions need a judge: name one in judge.model."
