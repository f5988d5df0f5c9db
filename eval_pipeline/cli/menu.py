"""The menu of `evals` without a command: choose what to run, see the command, start it."""

import re
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import duckdb
import questionary
import typer
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from questionary import Choice

from eval_pipeline.cli.output import End, complain, say
from eval_pipeline.cli.project import open_warehouse, read_settings, results
from eval_pipeline.errors import MendableError, RunError
from eval_pipeline.evaluation.catalog import NOTHING_SELECTED, look
from eval_pipeline.gateways.catalog import PreviousCatalog, select
from eval_pipeline.journal import SIGHTINGS, Journal
from eval_pipeline.journal.locks import running_run_ids
from eval_pipeline.records.model import Model
from eval_pipeline.results.queries import query
from eval_pipeline.results.runs import LATEST, FoundRun, find_runs, named_judges
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import current
from eval_pipeline.suites.items import Brief, briefs
from eval_pipeline.text import printable

ALL = ""
"""The value that means all models; no model is called that."""
EVERYTHING, SUITES, CATEGORIES, ITEMS = "everything", "suites", "categories", "items"
RUN, AGAIN, GO_ON, QUIT = "run", "again", "go on", "quit"
YES, NO, PRINT = "yes", "no", "print"


ACTIONS = (
    Choice("run models", RUN),
    Choice("run again what failed in the last run", AGAIN),
    Choice("go on with an unfinished run, or repair it", GO_ON),
    Choice("leaderboard", "leaderboard"),
    Choice("status: how the latest runs stand", "status"),
    Choice("doctor: is everything set up?", "doctor"),
    Choice("quit", QUIT),
)
STARTS = (
    Choice("yes, start it", YES),
    Choice("no, back", NO),
    Choice("print only: leave, and start nothing", PRINT),
)


class SelectableModel(NamedTuple):
    """A selected model, and the accuracy of its latest run that has scores."""

    model: Model
    accuracy: float | None = None
    judged: int = 0


class UnfinishedLaunch(NamedTuple):
    """A launch with missing replies or verdicts, counted over the runs of all its models."""

    run_id: str
    model: str
    models: int
    experiment: str
    opened_at: datetime
    not_asked: int
    failed: int
    not_judged: int


@dataclass(frozen=True)
class RunChoice:
    """The options chosen for a run; the settings decide the rest."""

    models: Sequence[str] = ()
    part: str = EVERYTHING
    names: Sequence[str] = ()
    experiment: str = ""
    max_samples: str = ""
    budget: str = ""

    def words(self) -> list[str]:
        """Return the words of the command after `evals`."""
        flag = "-s" if self.part == SUITES else "-c"
        chosen = [(flag, name) for name in self.names]
        options = [
            *(("-m", model) for model in self.models if ALL not in self.models),
            *([("-f", exactly(self.names))] if self.part == ITEMS else chosen),
            ("-e", self.experiment),
            ("--max-samples", self.max_samples),
            ("--budget", self.budget),
        ]
        return ["run", *(word for flag, value in options if value for word in (flag, value))]


def menu(app: typer.Typer) -> None:
    """Ask what to do, and do it by calling the command that is shown."""
    settings = read_settings()
    wizards = {RUN: _choose_run, AGAIN: _choose_failed, GO_ON: _choose_unfinished}
    while True:
        action = pick("What do you want to do?", ACTIONS, back="leave")
        if action is None:
            sys.exit(End.INTERRUPTED)
        if action == QUIT:
            return
        try:
            words = wizards[action](settings) if action in wizards else [action]
        except MendableError as error:
            complain(str(error))
            continue
        if words:
            sys.argv[1:] = words  # Dagster's history shows it
            app(words, prog_name="evals")


def pick(question: str, choices: Sequence[Choice], *, back: str = "back") -> str | None:
    """Return the value of the chosen line, or None after Escape."""
    keys = f"(arrows, Enter; Esc: {back})"
    picked: str | None = _answer(questionary.select(question, choices, instruction=keys))
    return picked


def tick(question: str, choices: Sequence[Choice]) -> list[str] | None:
    """Return the values of the ticked lines, or None after Escape."""
    ticked: list[str] | None = _answer(
        questionary.checkbox(
            question,
            choices,
            instruction="(Space ticks, typing filters, Enter; Esc: back)",
            validate=lambda ticked: bool(ticked) or "Tick at least one with Space.",
            use_search_filter=True,
            use_jk_keys=False,
        )
    )
    return ticked


def type_in(question: str, check: Callable[[str], bool | str]) -> str | None:
    """Return the text that was typed and passes the check, or None after Escape."""
    typed: str | None = _answer(questionary.text(question, validate=check))
    return typed if typed is None else typed.strip()


def _answer(question: questionary.Question) -> Any:
    """Ask; Escape goes back, and Ctrl-C is an interrupt as everywhere."""
    bindings, app = KeyBindings(), question.application

    @bindings.add("escape", eager=True)
    def back(event: KeyPressEvent) -> None:
        event.app.exit(result=None)

    app.key_bindings = merge_key_bindings([*filter(None, [app.key_bindings]), bindings])
    return question.unsafe_ask()


def _choose_run(settings: Settings) -> list[str] | None:
    """Ask one question after the other; Escape returns to the one before."""
    warehouse = open_warehouse(settings)
    with warehouse.reading() as db:
        models = selectable_models(settings, warehouse.journal, db)
    items = list(briefs(current(warehouse.journal, settings).items))
    usd = settings.budget.usd_per_run
    count = f"How many items of each suite at most? (Enter: {settings.plan.max_samples or 'all'})"
    limit = "no limit" if usd is None else f"{usd:g}"
    budget = f"Stop after how many US dollars? (Enter: {limit})"
    steps: list[Callable[[RunChoice], RunChoice | None]] = [
        lambda wanted: _with(wanted, "models", tick("Which models?", model_lines(models))),
        lambda wanted: _with_part(wanted, items, settings),
        lambda wanted: _with(
            wanted, "experiment", pick("Under which experiment?", experiment_lines(settings))
        ),
        lambda wanted: _with(wanted, "max_samples", type_in(count, check_count)),
        lambda wanted: _with(wanted, "budget", type_in(budget, check_amount)),
        lambda wanted: wanted if _confirms(wanted.words()) else None,
    ]
    chosen = [RunChoice()]
    while chosen and len(chosen) <= len(steps):
        wanted = steps[len(chosen) - 1](chosen[-1])
        chosen = [*chosen, wanted] if wanted else chosen[:-1]
    return chosen[-1].words() if chosen else None


def _with(wanted: RunChoice, field: str, answer: Any) -> RunChoice | None:
    return None if answer is None else replace(wanted, **{field: answer})


def _with_part(wanted: RunChoice, items: Sequence[Brief], settings: Settings) -> RunChoice | None:
    while part := pick("Which items?", part_lines(items, narrowed=settings.plan.narrows)):
        if part == EVERYTHING:
            return replace(wanted, part=part, names=())
        if names := tick(f"Which {part}?", name_lines(part, items)):
            return replace(wanted, part=part, names=names)
    return None


def _choose_failed(settings: Settings) -> list[str] | None:
    journal = open_warehouse(settings).journal
    with results(settings) as db:
        runs = find_runs(db, LATEST)
        models = selectable_models(settings, journal, db)
    words = repeat_failed(runs, [one.model.id for one in models])
    return words if _confirms(words) else None


def _choose_unfinished(settings: Settings) -> list[str] | None:
    judges, at_work = named_judges(settings.judge), running_run_ids(settings.journal)
    warehouse = open_warehouse(settings)
    # A run that was killed has left more in the journal than the file shows.
    warehouse.publish()
    with warehouse.reading() as db:
        launches = {one.run_id: one for one in unfinished_launches(db, judges, at_work)}
    if not launches:
        say("Every run has all its replies and verdicts.")
        return None
    while run_id := pick("Which run?", run_lines(launches.values())):
        if _confirms(words := finish(launches[run_id])):
            return words
    return None


def _confirms(words: Sequence[str]) -> bool:
    """Print the command and ask whether to run it."""
    say(f"\n  {shlex.join(['evals', *words])}\n")
    answer = pick("Start it?", STARTS)
    if answer == PRINT:
        sys.exit(End.DONE)
    return answer == YES


def selectable_models(
    settings: Settings, journal: Journal, db: duckdb.DuckDBPyConnection
) -> list[SelectableModel]:
    """Return the selected models; if none is known yet, the gateways are asked for theirs."""
    found = query(db, "summaries/latest_accuracy").fetchall()
    accuracies = {model: (accuracy, judged) for model, accuracy, judged in found}
    listed = PreviousCatalog.of(journal.read(SIGHTINGS)).listed.values()
    alive = [one.model for one in listed if one.kept_out is None]
    models = select(alive, settings.selection, text_only=settings.plan.text_only).models
    if not models:
        seen = run_async(look(settings, journal))
        models = seen.selected.models
        if not models:
            raise RunError(" ".join((NOTHING_SELECTED, *seen.warnings)))
    return [SelectableModel(model, *accuracies.get(model.id, ())) for model in models]


def unfinished_launches(
    db: duckdb.DuckDBPyConnection, judges: Collection[str] = (), at_work: Collection[str] = ()
) -> list[UnfinishedLaunch]:
    """Return launches that lack something `judges` can supply, newest first.

    What the launches `at_work` are busy with is left to them.
    """
    given = {"judges": list(judges), "at_work": list(at_work)}
    return [UnfinishedLaunch(*row) for row in query(db, "summaries/unfinished", given).fetchall()]


def exactly(items: Iterable[str]) -> str:
    """Return a filter for these items alone, each given as suite/category/id."""
    return f"^({'|'.join(map(re.escape, items))})$"


def path_of(brief: Brief) -> str:
    """Return the item as filters see it."""
    return f"{brief.key.suite}/{brief.category}/{brief.key.item_id}"


def model_lines(models: Sequence[SelectableModel]) -> list[Choice]:
    """Return a line for all of them, then one each with price and accuracy."""
    rows = [(one.model.id, _about(one)) for one in models]
    return [Choice(f"all {_count(len(models), 'selected model')}", ALL), *_aligned(rows)]


def part_lines(items: Sequence[Brief], *, narrowed: bool) -> list[Choice]:
    """Return the ways to choose items, of those that the settings choose."""
    whole = "everything that the settings choose" if narrowed else "everything"
    suites, categories = {one.key.suite for one in items}, {one.category for one in items}
    several = f"some of {len(suites)} suites"
    return [
        Choice(f"{whole}, of {_count(len(items), 'item')}", EVERYTHING),
        *([Choice(several, SUITES)] if len(suites) > 1 else []),
        Choice(f"some of {_count(len(categories), 'category', 'categories')}", CATEGORIES),
        Choice("single items", ITEMS),
    ]


def name_lines(part: str, items: Sequence[Brief]) -> list[Choice]:
    """Return the suites, categories or items there are."""
    if part == ITEMS:
        return [Choice(printable(path), path) for path in map(path_of, items)]
    counts = Counter(one.key.suite if part == SUITES else one.category for one in items)
    return _aligned([(name, _count(number, "item")) for name, number in sorted(counts.items())])


def experiment_lines(settings: Settings) -> list[Choice]:
    """Return every experiment, that of the settings first."""
    names = dict.fromkeys((settings.experiment, *settings.experiments))
    return [Choice(printable(name), name) for name in names]


def run_lines(launches: Iterable[UnfinishedLaunch]) -> list[Choice]:
    """Return each launch by its id, with what is missing."""
    lines = []
    for one in launches:
        models = one.model if one.models == 1 else f"{one.models} models"
        lacks = {"not asked": one.not_asked, "failed": one.failed, "not judged": one.not_judged}
        missing = ", ".join(f"{number} {what}" for what, number in lacks.items() if number)
        about = f"{one.opened_at:%Y-%m-%d %H:%M}  {models}, {one.experiment}: {missing}"
        lines.append(Choice(printable(f"{one.run_id[:8]}  {about}"), one.run_id))
    return lines


def finish(launch: UnfinishedLaunch) -> list[str]:
    """Return the command that asks what was never asked, or else repairs what failed."""
    name = launch.run_id[:8]
    return ["run", "--resume", name] if launch.not_asked else ["fix", name]


def repeat_failed(runs: Sequence[FoundRun], selected: Iterable[str]) -> list[str]:
    """Return the command that asks again what failed in these runs of one launch."""
    models = sorted({run.model for run in runs})
    named = () if models == sorted(selected) else models
    return ["run", "--failed", *RunChoice(named, experiment=runs[0].experiment).words()[1:]]


def _check(pattern: str, complaint: str) -> Callable[[str], bool | str]:
    """Return what returns True for a text that fits, else the complaint."""
    return lambda text: bool(re.fullmatch(pattern, text.strip(), re.ASCII)) or complaint


check_count = _check(r"0*[1-9]\d*|", "A whole number, or nothing.")
check_amount = _check(r"(?=.*[1-9])\d{0,12}(\.\d{0,6})?|", "An amount such as 2.50, or nothing.")


def _about(one: SelectableModel) -> str:
    prompt, completion, price = (
        one.model.prices.prompt,
        one.model.prices.completion,
        "price unknown",
    )
    if prompt is not None and completion is not None:
        price = f"${prompt * 1e6:.4g}/${completion * 1e6:.4g} per million tokens"
    done = "" if one.accuracy is None else f"last {one.accuracy:.1%} of {one.judged}"
    simulated = "simulated" if one.model.simulated else ""
    return ", ".join(filter(None, (price, done, simulated)))


def _aligned(rows: Sequence[tuple[str, str]]) -> list[Choice]:
    """Return names with the text about each in a column."""
    width = min(40, max((len(name) for name, _ in rows), default=0))
    return [Choice(f"{printable(name):<{width}}  {about}", name) for name, about in rows]


def _count(number: int, one: str, several: str = "") -> str:
    return f"{number:,} {one if number == 1 else several or one + 's'}"
