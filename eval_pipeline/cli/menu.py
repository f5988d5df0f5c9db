"""`evals` without a command: choose by keys what to run, see the command, start it."""

import shlex
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from eval_pipeline.cli.choices import (
    ALL,
    EVERYTHING,
    Chosen,
    Line,
    a_count,
    again,
    an_amount,
    experiment_lines,
    go_on,
    model_lines,
    names_of,
    part_lines,
    run_lines,
)
from eval_pipeline.cli.keys import pick, tick, type_in
from eval_pipeline.cli.output import End, complain, say
from eval_pipeline.cli.places import open_warehouse, results
from eval_pipeline.errors import MendableError

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from eval_pipeline.choosing import OfferedModel
    from eval_pipeline.items import Brief
    from eval_pipeline.settings import Settings

RUN, AGAIN, GO_ON, QUIT = "run", "again", "go on", "quit"
ACTIONS = (
    Line(RUN, "run models"),
    Line(AGAIN, "run again what failed in the last run"),
    Line(GO_ON, "go on with an unfinished run, or repair it"),
    Line("leaderboard", "leaderboard"),
    Line("status", "status: how the latest runs stand"),
    Line("doctor", "doctor: is everything set up?"),
    Line(QUIT, "quit"),
)
YES, NO, PRINT = "yes", "no", "print"
STARTS = (
    Line(YES, "yes, start it"),
    Line(NO, "no, back"),
    Line(PRINT, "print only: leave, and start nothing"),
)
Step = Callable[[Chosen], Chosen | None]


def menu(app: typer.Typer) -> None:
    """Asks what to do and does it, by calling the command that it shows."""
    from eval_pipeline.settings import Settings

    settings = Settings.from_env()
    while True:
        action = pick("What do you want to do?", ACTIONS, back="leave")
        if action is None:
            sys.exit(End.INTERRUPTED)
        if action == QUIT:
            return
        ask = _ASKED.get(action)
        try:
            words = ask(settings) if ask else [action]
        except MendableError as error:
            complain(str(error))
            continue
        if words:
            sys.argv[1:] = words  # which is what Dagster's history tells
            app(words, prog_name="evals")


def _run(settings: "Settings") -> list[str] | None:
    """Asks one thing after the other; who goes back is asked the one before again."""
    from eval_pipeline.choosing import offered_items, offered_models

    warehouse = open_warehouse(settings)
    with warehouse.reading() as db:
        offered = offered_models(settings, warehouse.journal, db)
    items = offered_items(settings, warehouse.journal)
    steps: list[Step] = [
        lambda wanted: _with_models(wanted, offered),
        lambda wanted: _with_part(wanted, items, settings),
        lambda wanted: _with_experiment(wanted, settings),
        lambda wanted: _with_count(wanted, settings),
        lambda wanted: _with_budget(wanted, settings),
        lambda wanted: wanted if _is_to_start(wanted.words()) else None,
    ]
    chosen = [Chosen()]
    while chosen and len(chosen) <= len(steps):
        wanted = steps[len(chosen) - 1](chosen[-1])
        chosen = [*chosen, wanted] if wanted else chosen[:-1]
    return chosen[-1].words() if chosen else None


def _with_models(wanted: Chosen, offered: "Sequence[OfferedModel]") -> Chosen | None:
    models = tick("Which models?", model_lines(offered))
    if models is None:
        return None
    return replace(wanted, models=() if ALL in models else models)


def _with_part(wanted: Chosen, items: "Sequence[Brief]", settings: "Settings") -> Chosen | None:
    while part := pick("Which items?", part_lines(items, narrowed=settings.plan.narrows)):
        if part == EVERYTHING:
            return wanted
        if names := tick(f"Which {part}?", names_of(part, items)):
            return replace(wanted, part=part, names=names)
    return None


def _with_experiment(wanted: Chosen, settings: "Settings") -> Chosen | None:
    name = pick("Under which experiment?", experiment_lines(settings))
    return replace(wanted, experiment=name) if name else None


def _with_count(wanted: Chosen, settings: "Settings") -> Chosen | None:
    usual = settings.plan.max_samples or "all"
    text = type_in(f"How many items of each suite at most? (Enter: {usual})", a_count)
    return None if text is None else replace(wanted, max_samples=text.strip())


def _with_budget(wanted: Chosen, settings: "Settings") -> Chosen | None:
    usual = settings.budget.usd_per_run
    said = "no limit" if usual is None else f"{usual:g}"
    text = type_in(f"Stop after how many US dollars? (Enter: {said})", an_amount)
    return None if text is None else replace(wanted, budget=text.strip())


def _again(settings: "Settings") -> list[str] | None:
    from eval_pipeline.choosing import offered_models
    from eval_pipeline.journal.deployment import open_journal
    from eval_pipeline.results.runs import LATEST, find_runs

    with results(settings) as db:
        runs = find_runs(db, LATEST)
        selected = [one.model.id for one in offered_models(settings, open_journal(settings), db)]
    words = again(runs, selected)
    return words if _is_to_start(words) else None


def _go_on(settings: "Settings") -> list[str] | None:
    from eval_pipeline.choosing import unfinished
    from eval_pipeline.journal.locks import running_run_ids
    from eval_pipeline.results.runs import named_judges

    judges, at_work = named_judges(settings.judge), running_run_ids(settings.journal)
    warehouse = open_warehouse(settings)
    # A run that was killed has left more in the journal than the file shows.
    warehouse.publish()
    with warehouse.reading() as db:
        launches = {one.run_id: one for one in unfinished(db, judges, at_work)}
    if not launches:
        say("Every run has all its replies and verdicts.")
        return None
    while run_id := pick("Which run?", run_lines(launches.values())):
        words = go_on(launches[run_id])
        if _is_to_start(words):
            return words
    return None


def _is_to_start(words: Sequence[str]) -> bool:
    """Shows the command; who wants to see it only, leaves."""
    say(f"\n  {shlex.join(['evals', *words])}\n")
    answer = pick("Start it?", STARTS)
    if answer == PRINT:
        sys.exit(End.DONE)
    return answer == YES


_ASKED: dict[str, Callable[["Settings"], list[str] | None]] = {
    RUN: _run,
    AGAIN: _again,
    GO_ON: _go_on,
}
