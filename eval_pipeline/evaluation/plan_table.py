"""Plans as a table, in sentences, and as JSON."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

from eval_pipeline.evaluation.budget import TOKENS_PER_REPLY
from eval_pipeline.evaluation.estimate import BY_LENGTH, Estimate
from eval_pipeline.evaluation.plan import Limit, ModelPlan, check_budgets, total
from eval_pipeline.results.tables.format import Cell, FittedTable, about, named

MOST_TOLD = 10
"""How many warnings of one kind are printed; JSON has them all."""
_PURPOSES = ("run", "model", "day")
_RUN_CHARACTERS = 8
_SMALLEST_USD = 0.005
CAPTION = (
    "An estimate; USD is what is known of the cost. There: answered in this run already, or taken "
    "over from earlier ones at no cost. Verdicts: at most so many, those on earlier answers "
    "included."
)


def plan_table(plans: Sequence[ModelPlan]) -> FittedTable:
    """Return a row per model, the dearest first, and their sum."""
    simulated = bool(plans) and all(plan.simulated for plan in plans)
    columns = ("model", "run", "planned", "there", "calls", "tokens", "USD", "verdicts", "USD")
    table = FittedTable(
        "What would be asked" + (" of SIMULATED models" if simulated else ""),
        *columns,
        right=columns[2:],
        dropped_first=("tokens", "there", "planned"),
        caption=CAPTION,
    )
    for plan in _dearest_first(plans):
        table.add(*_cells(plan, all_simulated=simulated))
    if len(plans) > 1:
        asking, judging = total(plans)
        planned, there = sum(one.planned for one in plans), sum(map(_there, plans))
        table.add_section()
        numbers = (f"{planned:,}", f"{there:,}", *_numbers(asking), *_numbers(judging)[::2])
        table.add("together", "", *numbers)
    return table


def plan_lines(plans: Sequence[ModelPlan]) -> list[str]:
    """Return sentences that say what the table cannot."""
    carried = sum(plan.carried for plan in plans)
    reused = f"Taken over from earlier runs, at no cost: {_count(carried, 'answer')}."
    warnings = [warning for plan in plans for warning in plan.warnings]
    return [
        *_totals(plans),
        *([reused] if carried else []),
        *_cut([plan.why_not for plan in plans if plan.why_not], "models are not asked."),
        *_budgets(check_budgets(plans)),
        *_cut(warnings, "warnings; --json has them all."),
        "Nobody was asked, and nothing was changed.",
    ]


def as_json(plans: Sequence[ModelPlan]) -> dict[str, object]:
    """Return all of it for programs."""
    return {
        "models": [_row(plan) for plan in _dearest_first(plans)],
        "total": _estimates(*total(plans)),
        "budgets": [asdict(limit) | {"holds": limit.holds} for limit in check_budgets(plans)],
    }


def _row(plan: ModelPlan) -> dict[str, object]:
    names = ("model", "simulated", "experiment", "run_id", "items", "samples")
    counts = ("planned", "answered", "carried")
    return {
        **{name: getattr(plan, name) for name in (*names, *counts)},
        **_estimates(plan.asking, plan.judging),
        "estimated_by": plan.asking.by or None,
        "judge_estimated_by": plan.judging.by or None,
        "warnings": list(plan.warnings),
        "why_not": plan.why_not,
    }


def _estimates(asking: Estimate, judging: Estimate) -> dict[str, object]:
    return {
        f"{prefix}{name}": getattr(one, name)
        for prefix, one in (("", asking), ("judge_", judging))
        for name in ("calls", "input_tokens", "output_tokens", "cost_usd")
    }


def _dearest_first(plans: Sequence[ModelPlan]) -> list[ModelPlan]:
    return sorted(plans, key=lambda plan: (-plan.known_usd, -plan.asking.calls, plan.model))


def _cells(plan: ModelPlan, *, all_simulated: bool) -> Iterator[Cell | str]:
    yield named(plan.model, " (simulated)" if plan.simulated and not all_simulated else "")
    if plan.why_not:
        yield from ("not asked", "", "", "", "", "")
    else:
        yield plan.run_id[:_RUN_CHARACTERS] if plan.run_id else "new"
        yield from (f"{plan.planned:,}", f"{_there(plan):,}", *_numbers(plan.asking))
    yield from _numbers(plan.judging)[::2]


def _there(plan: ModelPlan) -> int:
    return plan.answered + plan.carried


def _numbers(one: Estimate) -> tuple[str, str, str]:
    return f"{one.calls:,}", about(one.tokens), _usd(one.cost_usd)


def _usd(usd: float | None) -> str:
    if usd is None:
        return "?"
    return "<0.01" if 0 < usd < _SMALLEST_USD else f"{usd:,.2f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _totals(plans: Sequence[ModelPlan]) -> Iterator[str]:
    asking, judging = total(plans)
    if not asking.calls and not judging.calls:
        yield "Nothing is left to ask or to judge."
        return
    parts = [f"{_count(asking.calls, 'call')}, {about(asking.tokens)} tokens, {_about(asking)}"]
    if judging.calls:
        verdicts = f"at most {_count(judging.calls, 'verdict')}"
        parts.append(f"{verdicts}, {about(judging.tokens)} tokens, {_about(judging)}")
        parts.append(f"together {_about(asking + judging)}")
    yield f"Estimate for {_count(len(plans), 'model')}: {'; '.join(parts)}."
    yield from _basis(plans)
    if unknown := sum(plan.cost_usd is None for plan in plans):
        yield f"Not in the cost: what nobody knows the price of, at {_count(unknown, 'model')}."
    if any(plan.simulated for plan in plans):
        yield "For simulated models nobody is paid: their prices are as invented as their skill."


def _about(one: Estimate) -> str:
    return f"about {_usd(one.cost_usd)} USD"


def _basis(plans: Sequence[ModelPlan]) -> Iterator[str]:
    """Say what the numbers rest on."""
    known = {plan.model for plan in plans if "earlier" in plan.asking.by}
    guessed = {plan.model for plan in plans if BY_LENGTH in plan.asking.by}
    told = []
    if known:
        told.append(f"for {_count(len(known), 'model')} on what earlier answers took")
    if guessed:
        where = ", in suites without any," if known & guessed else ""
        replies = f"{TOKENS_PER_REPLY:,} tokens per reply (who thinks at length needs more)"
        of_whom = f"for {_count(len(guessed), 'model')}{where}"
        told.append(f"{of_whom} on the length of the questions and {replies}")
    if told:
        yield f"It rests {', and '.join(told)}."


def _budgets(checks: Sequence[Limit]) -> Iterator[str]:
    if not any(check.needed_usd for check in checks):
        return
    in_order = sorted(checks, key=lambda check: _PURPOSES.index(check.purpose))
    for _, group in groupby(in_order, key=lambda check: check.purpose):
        yield _of_one_purpose(list(group))
    if short := [check for check in in_order if not check.holds]:
        first = min(short, key=lambda check: check.share)
        whose = f" ({_whose(first)})" if len(short) > 1 and _whose(first) else ""
        yield f"Reached first, when about {first.share:.0%} is paid for: {_name(first)}{whose}."


def _of_one_purpose(checks: Sequence[Limit]) -> str:
    name = _name(checks[0]).capitalize().replace("usd", "USD")
    short = sorted((one for one in checks if not one.holds), key=lambda check: check.share)
    if len(checks) == 1:
        return f"{name} will {'not ' if short else ''}do: {_needed(checks[0])}."
    if not short:
        return f"{name} will do for each of {len(checks)}."
    told = _cut([f"{_whose(check)} ({_needed(check)})" for check in short], "of them")
    return f"{name} will not do for {len(short)} of {len(checks)}: {', '.join(told)}."


def _name(check: Limit) -> str:
    return f"the budget of {check.limit_usd:g} USD per {check.purpose}"


def _whose(check: Limit) -> str:
    return check.model or (f"run {check.run_id[:_RUN_CHARACTERS]}" if check.run_id else "")


def _needed(check: Limit) -> str:
    left = max(check.left_usd, 0.0)
    return f"about {_usd(check.needed_usd)} USD are needed, {_usd(left)} are left"


def _cut(told: Sequence[str], of_what: str) -> list[str]:
    more = len(told) - MOST_TOLD
    return [*told[:MOST_TOLD], *([f"and {more} more {of_what}"] if more > 0 else [])]
