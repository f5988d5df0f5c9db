"""Which run each model would go on with, and what would be asked in it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from eval_pipeline.benchmark import Benchmark
from eval_pipeline.carrying import Carried, would_carry
from eval_pipeline.errors import MendableError, RunError
from eval_pipeline.evaluation.catalog import known_models, look
from eval_pipeline.gateways.chat import ChatRequest
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.history import Pending, ReplyKey
from eval_pipeline.journal import PREDICTIONS, FileCompactedError, Journal
from eval_pipeline.money import Ledger, guessed, unpriced
from eval_pipeline.planning.estimates import NO_CALLS, Estimate, Part, estimate, few
from eval_pipeline.planning.plans import Limit, ModelPlan
from eval_pipeline.planning.verdicts import Coming, Judging
from eval_pipeline.planning.versions import Likeness, Versions
from eval_pipeline.records import Item, Mode, Model, Run, Usage
from eval_pipeline.runs import OpenRun, which_run
from eval_pipeline.runtime import in_a_thread
from eval_pipeline.settings import Settings
from eval_pipeline.stages.asker import Asker
from eval_pipeline.stages.grading import graders_of
from eval_pipeline.stages.predict import Launch, wanted_run
from eval_pipeline.usual import usual

NOTHING_CARRIED = Carried(frozenset(), {})


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
        self.versions = Versions(self.benchmark, self.journal)
        self.ledger = Ledger(self.settings.budget, self.journal)

    async def plan(self, model: Model) -> ModelPlan:
        """What would be asked of this model, or why nothing would."""
        try:
            if self._searches_the_web and not model.web_search:
                raise RunError(f"{model.id} is not asked: its gateway lists no web search.")
            asker = Asker.of(model, self.settings, self.gateways)
            return await in_a_thread(_undisturbed, partial(self._plan, asker))
        except MendableError as error:
            unasked = partial(self._unasked, model, str(error))
            return await in_a_thread(_undisturbed, unasked)

    def _plan(self, asker: Asker) -> ModelPlan:
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

    def _which(self, asker: Asker) -> OpenRun:
        """The run that the stage `predictions` would go on with or open."""
        launch = self.launch
        wanted, mode = wanted_run(asker, self.benchmark, launch, self.settings, self.journal)
        return which_run(self.journal, wanted, mode, run_id=launch.run_for(asker.model.id))

    def _carried(self, asker: Asker, opened: OpenRun) -> Carried:
        run = opened.run
        if not run.carry_from or not opened.pending:
            return NOTHING_CARRIED
        items = self.versions.items(run.benchmark_version)

        def request_hash(reply: ReplyKey) -> str:
            return asker.request_hash(items[reply.key], reply.sample)

        alike = Likeness(run, self.versions, request_hash)
        return would_carry(self.journal, run, opened.pending, alike, self.versions.unchanged)

    def _estimate(self, asker: Asker, run: Run, left: Pending) -> Estimate:
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
        for purse in self.ledger.account(run.run_id, model.id).purses:
            yield Limit(
                purse.purpose,
                None if opened.is_new or purse.purpose == "day" else run.run_id,
                model.id if purse.purpose == "model" else None,
                purse.limit_usd,
                purse.limit_usd - purse.spent_usd,
            )

    def _warnings(self, asker: Asker, run: Run, asking: Estimate) -> Iterator[str]:
        model = asker.model
        yield from asker.warnings(self.settings, run.samples)
        if asking.cost_usd is None and not unpriced(model, self.settings.budget):
            yield f"{model.id}: no price is known, so its answers are not in the cost."
        if self.judging is not None and self.judging.lacks_a_judge(run):
            yield f"{model.id}: answers to questions need a judge: name one in judge.model."

    @property
    def _searches_the_web(self) -> bool:
        return self.settings.experiments[self.settings.experiment].web_search


def _guessed(asker: Asker, item: Item) -> Usage:
    """What asking it will use, if nothing better is known than its length."""
    model = asker.model
    limits = (asker.experiment.max_tokens, model.max_output_tokens)
    return guessed(
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
