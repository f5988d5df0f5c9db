"""The plan for each model, and whether the budgets will do for all of them."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from eval_pipeline.planning.estimates import NO_CALLS, Estimate


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
