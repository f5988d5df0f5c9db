"""What a launch would ask, of whom and at what cost; nothing is written, and no model is asked."""

from eval_pipeline.planning.estimates import BY_LENGTH, Estimate
from eval_pipeline.planning.planner import draw_up
from eval_pipeline.planning.plans import BudgetCheck, Limit, ModelPlan, check_budgets, total

__all__ = [
    "BY_LENGTH",
    "BudgetCheck",
    "Estimate",
    "Limit",
    "ModelPlan",
    "check_budgets",
    "draw_up",
    "total",
]
