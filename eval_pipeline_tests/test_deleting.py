"""`evals delete`: a run goes for good, all of it and nothing else, also if killed meanwhile."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from eval_pipeline.defs.instance import dagster_instance
from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.budget import SpendTracker
from eval_pipeline.evaluation.deletion import (
    DoomedRun,
    RunKey,
    delete_runs,
    doomed_runs,
    finish_deletions,
    in_words,
)
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.reuse import reuse_answers
from eval_pipeline.evaluation.state import Pending
from eval_pipeline.journal import (
    ATTEMPTS,
    DIAGNOSES,
    JUDGED,
    PREDICTIONS,
    RECLASSIFIED,
    REJUDGED,
    RUNS,
    Journal,
    JournalError,
)
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Repeat
from eval_pipeline.records.run import Attempt, Mode
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.sections import Budget
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.boards import EXAM, Records, answers, graded, taken, verdicts
from eval_pipeline_tests.builders import a_diagnosis, a_journal, a_reclassification, settings_in
from eval_pipeline_tests.project import call
from eval_pipeline_tests.stand import STRONG, Stand
from eval_pipeline_tests.terminal import in_terminal

DOOMED, OTHER = "aaaa-1", "bbbb-2"
MODELS = ("demo/strong", "demo/weak")
STREAMS_OF_RUNS = (RUNS, ATTEMPTS, PREDICTIONS, JUDGED, REJUDGED, DIAGNOSES, RECLASSIFIED)
HOLD = """
import asyncio, sys
from pathlib import Path
from typing import Any
from eval_pipeline.journal import STREAMS, Journal

async def hold(root, name, model):
    (stream,) = (one for one in STREAMS if one.name == name)
    async with Journal(Path(root)).claim(stream, model):
        print("held", flush=True)
        await asyncio.to_thread(input)

asyncio.run(hold(*sys.argv[1:]))
"""


LIVE = """
import sys
from pathlib import Path
from typing import Any
from eval_pipeline.journal.locks import hold_run_lock

with hold_run_lock(Path(sys.argv[1]), sys.argv[2]):
    print("alive", flush=True)
    input()
"""


class Killed(BaseException):
    """What no code of ours catches."""


def untold(_: Sequence[RunKey]) -> None:
    """For tests without Dagster."""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models with a run of one launch, and each with a later one."""
    folder = tmp_path_factory.mktemp("template")
    runs = [
        taken(model, run_id, hour=hour, plan=list(EXAM.items)[:1], scope="filtered")
        for hour, run_id in enumerate((DOOMED, OTHER))
        for model in MODELS
    ]
    records = [record for run in runs for record in graded(run, [1.0])]
    journal = a_journal(folder, *records, benchmark=EXAM)
    for run in runs:
        attempt = Attempt(
            run_id=run.run_id,
            model=run.model,
            experiment="default",
            filtered=True,
            repair=False,
            began_at=run.opened_at,
        )
        journal.write_whole(ATTEMPTS, run.model, run.run_id, records=[attempt])
        repeats = (Repeat(**dict(one), repeat=1) for one in verdicts(run, [1.0]))
        journal.write_whole(REJUDGED, run.model, run.run_id, "again", records=repeats)
        (verdict,) = verdicts(run, [1.0])
        said = a_diagnosis(verdict), a_reclassification(verdict)
        journal.write_whole(DIAGNOSES, run.model, run.run_id, "once", records=said[:1])
        journal.write_whole(RECLASSIFIED, run.model, run.run_id, "once", records=said[1:])
    Warehouse(folder / "evals.duckdb", journal).publish()
    return folder


@pytest.fixture
def warehouse(template: Path, tmp_path: Path) -> Warehouse:
    """A copy of it."""
    folder = shutil.copytree(template, tmp_path / "data")
    return Warehouse(folder / "evals.duckdb", Journal(folder / "journal"))


def kept(journal: Journal) -> set[str]:
    """All that the journal has of runs, as stream, model and the first part of the file's name."""
    return {
        "/".join(path.relative_to(journal.root).with_suffix("").parts[:3])
        for stream in STREAMS_OF_RUNS
        for path in journal.files(stream)
    }


def delete(
    warehouse: Warehouse,
    name: str,
    *,
    tell: Callable[[Sequence[RunKey]], None] = untold,
) -> list[DoomedRun]:
    """As the command does it."""
    doomed = doomed_runs(warehouse, name, finish_deletions(warehouse, tell))
    if doomed:
        delete_runs(warehouse, doomed, tell)
    return doomed


def runs_shown(warehouse: Warehouse) -> dict[str, set[tuple[str, str]]]:
    tables = ("runs", "plans", "attempts", "predictions", "judged", "rejudged", "metrics")
    with warehouse.reading() as db:
        return {
            table: set(db.sql(f"select distinct run_id, model from {table}").fetchall())
            for table in tables
        }


def test_a_run_goes_with_all_that_belongs_to_it_and_nothing_else(warehouse: Warehouse) -> None:
    before, files = runs_shown(warehouse), kept(warehouse.journal)

    delete(warehouse, "aaaa")

    assert len(files) == 2 * len(MODELS) * len(STREAMS_OF_RUNS)
    assert kept(warehouse.journal) == {one for one in files if DOOMED not in one}
    assert runs_shown(warehouse) == {
        table: {(run_id, model) for run_id, model in shown if run_id != DOOMED}
        for table, shown in before.items()
    }
    assert all(len(shown) == 4 for shown in before.values())
    assert not list((warehouse.journal.root / "aside").glob("*/*"))


def test_of_several_models_one_alone_can_go(warehouse: Warehouse) -> None:
    files = kept(warehouse.journal)

    delete(warehouse, "demo/weak@aaaa")

    gone = {one for one in files if DOOMED in one and "weak" in one}
    assert len(gone) == len(STREAMS_OF_RUNS)
    assert kept(warehouse.journal) == files - gone


@pytest.mark.parametrize("moved", range(1, 1 + len(STREAMS_OF_RUNS)))
def test_a_deletion_that_is_killed_can_be_finished_and_is_never_paid_for(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    journal, files = warehouse.journal, kept(warehouse.journal)
    left = iter(range(2 * moved - 1))  # each move is synced at both ends

    def sync(path: Path) -> None:
        if next(left, None) is None:
            raise Killed(path)

    with monkeypatch.context() as own, pytest.raises(Killed):
        own.setattr("eval_pipeline.journal.files.sync", sync)
        delete(warehouse, "demo/strong@aaaa")

    # The record is the first to go: nothing is left that looks as if answers were missing.
    assert len(files - kept(journal)) == moved
    assert not journal.exists(RUNS, "demo/strong", DOOMED)
    warehouse.publish()
    with warehouse.reading() as db:
        measured = db.sql("select distinct run_id, model from metrics").fetchall()
        assert set(measured) == set(db.sql("select run_id, model from runs").fetchall())
        assert len(measured) == 3

    assert delete(warehouse, "demo/strong@aaaa") == []

    gone = {one for one in files if DOOMED in one and "strong" in one}
    assert kept(journal) == files - gone
    assert journal.trashed_runs() == []


@pytest.mark.parametrize("at", ["publish", "tell", "forget"])
def test_what_comes_after_the_journal_is_made_up_for_too(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    told: list[RunKey] = []

    def kill(*_: object, **__: object) -> None:
        raise Killed

    with monkeypatch.context() as own, pytest.raises(Killed):
        doomed = doomed_runs(warehouse, "aaaa")
        if at == "publish":
            own.setattr(Warehouse, "publish", kill)
        if at == "forget":
            own.setattr(Journal, "empty_trash", kill)
        tell = kill if at == "tell" else untold
        delete_runs(warehouse, doomed, tell)

    assert delete(warehouse, "aaaa", tell=told.extend) == []

    assert {run.run_id for run in told} == {DOOMED}
    assert {run for run, _ in runs_shown(warehouse)["predictions"]} == {OTHER}
    assert warehouse.journal.trashed_runs() == []


def test_whoever_finishes_the_deletion_of_the_latest_does_not_delete_another(
    warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as own, pytest.raises(Killed):
        own.setattr(Journal, "empty_trash", lambda _: (_ for _ in ()).throw(Killed()))
        delete(warehouse, "latest")

    assert delete(warehouse, "latest") == []

    assert {run for run, _ in runs_shown(warehouse)["runs"]} == {DOOMED}


def test_a_plan_to_delete_that_came_to_nothing_deletes_nothing(warehouse: Warehouse) -> None:
    files = kept(warehouse.journal)
    (warehouse.journal.root / "aside" / "demo%2Fstrong" / DOOMED).mkdir(parents=True)

    assert finish_deletions(warehouse, untold) == []
    delete(warehouse, "bbbb")

    assert kept(warehouse.journal) == {one for one in files if OTHER not in one}


@pytest.mark.parametrize(
    ("stream", "name"),
    [("predictions", "demo/weak"), ("judged", "demo/strong"), ("rejudged", "demo/judge")],
)
def test_nothing_goes_while_a_process_works_on_it(
    warehouse: Warehouse, stream: str, name: str
) -> None:
    files, pipe = kept(warehouse.journal), subprocess.PIPE
    command = [sys.executable, "-c", HOLD, str(warehouse.journal.root), stream, name]

    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with pytest.raises(JournalError) as refused:
            delete(warehouse, "aaaa")
        holder.communicate("\n")

    assert f"process {holder.pid} on " in str(refused.value)
    assert f"is at work on the {stream} of {name}" in str(refused.value)
    assert kept(warehouse.journal) == files


def test_a_run_that_is_alive_is_left_alone(warehouse: Warehouse) -> None:
    files, journal = kept(warehouse.journal), warehouse.journal

    with (
        hold_run_lock(journal.root, DOOMED),
        pytest.raises(RunError, match="run aaaa-1 is at work"),
    ):
        delete(warehouse, "aaaa")

    assert kept(journal) == files


@pytest.mark.parametrize(
    ("name", "refused"),
    [("demo/strong@aaaa", True), ("aaaa", True), ("demo/weak@aaaa", False)],
)
def test_a_run_that_another_launch_continues_is_left_alone(
    warehouse: Warehouse, name: str, *, refused: bool
) -> None:
    journal, launch = warehouse.journal, "dddd-4"
    attempt = Attempt(
        run_id=launch,
        model="demo/strong",
        experiment="default",
        filtered=True,
        repair=False,
        began_at=taken("demo/strong", launch).opened_at,
    )
    journal.write_whole(ATTEMPTS, "demo/strong", launch, records=[attempt])
    files, pipe = kept(journal), subprocess.PIPE
    command = [sys.executable, "-c", LIVE, str(journal.root), launch]

    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "alive\n"
        if refused:
            with pytest.raises(RunError, match="run aaaa-1 is at work"):
                delete(warehouse, name)
        else:
            delete(warehouse, name)
        holder.communicate("\n")

    assert (kept(journal) == files) is refused
    delete(warehouse, "demo/strong@aaaa")


def test_answers_that_another_run_took_over_stay_and_are_judged(stand: Stand) -> None:
    first = stand.settings.overridden({"plan": {"test_filter": "q1|q2"}})
    stand.predict(STRONG, launch=Launch("old"), settings=first)
    stand.judge("demo/strong")
    stand.predict(STRONG, launch=Launch("new", Mode.AUTO))
    warehouse = Warehouse(stand.settings.database, stand.journal)
    warehouse.publish()
    asked = stand.gateway.requests["demo/strong"]

    (doomed,) = delete(warehouse, "old")
    stand.judge("demo/strong")
    (tally,) = stand.predict(STRONG, launch=Launch("new", Mode.FIX, continue_run="new"))
    warehouse.publish()

    assert doomed.carried_to == ["new"]
    assert (tally.planned, stand.gateway.requests["demo/strong"]) == (0, asked)
    with warehouse.reading() as db:
        shown = db.sql("select run_id, complete, judged from metrics where slice = 'all'")
        assert shown.fetchall() == [("new", True, 3)]
        carried = db.sql("select item_id from predictions where carried_from = 'old' order by 1")
        assert carried.fetchall() == [("q1",), ("q2",)]


def test_a_run_that_was_to_take_over_from_it_goes_on_without(tmp_path: Path) -> None:
    old = taken("demo/strong", "old")
    new = taken("demo/strong", "new", hour=1, carry_from=("old",))
    journal = a_journal(tmp_path, *graded(old, [1.0] * 40), new, benchmark=EXAM)
    warehouse = Warehouse(tmp_path / "evals.duckdb", journal)

    delete(warehouse, "old")
    pending = Pending(new.plan, range(new.planned))

    assert len(reuse_answers(journal, new, pending, lambda _: "any")) == 40
    warehouse.publish()


def test_what_it_cost_counts_in_no_budget_any_more(tmp_path: Path) -> None:
    run = taken("demo/strong", DOOMED)
    paid = {"cost_usd": 0.25, "cost_estimated": False}
    records: Records = [run, *answers(run, usage=paid), *verdicts(run, [1.0] * 40, usage=paid)]
    journal = a_journal(tmp_path, *records, benchmark=EXAM)
    warehouse = Warehouse(tmp_path / "evals.duckdb", journal)

    def spent() -> float:
        (purse,) = (
            SpendTracker(Budget(usd_per_run=1), journal).run_budget(DOOMED, "demo/strong").limits
        )
        return purse.spent_usd

    before = spent()
    (doomed,) = delete(warehouse, "aaaa")

    assert (before, doomed.cost_usd, spent()) == (20.0, 20.0, 0.0)
    told = "\n".join(in_words([doomed]))
    assert "The 20.0000 USD that was paid will no longer count in any budget." in told
    assert "40 of 40 answers, 40 verdicts, 20.0000 USD, on the leaderboard." in told


def test_requests_that_failed_are_no_answers(tmp_path: Path) -> None:
    run = taken("demo/strong", DOOMED)
    lost, *rest = answers(run)
    records: Records = [run, lost.model_copy(update={"outcome": Outcome.TIMEOUT}), *rest]
    journal = a_journal(tmp_path, *records, benchmark=EXAM)

    (doomed,) = delete(Warehouse(tmp_path / "evals.duckdb", journal), "aaaa")

    assert (doomed.predictions, doomed.answered) == (40, 39)
    assert "39 of 40 answers" in "\n".join(in_words([doomed]))


def test_pruned_is_what_is_old_and_no_number_rests_on(tmp_path: Path) -> None:
    part: dict[str, Any] = {"plan": list(EXAM.items)[:1], "scope": "filtered"}
    settings = settings_in(tmp_path)
    runs = [
        taken("demo/strong", "ranked"),
        taken("demo/strong", "part-0", hour=0, **part),
        taken("demo/strong", "part-1", hour=1, **part),
        taken("demo/strong", "part-2", hour=2, **part),
        taken("demo/weak", "part-1", hour=1, **part),
        taken("demo/weak", "other", hour=3, experiment="other", **part),
        taken("demo/strong", "ranked-2", hour=4),
    ]
    records = [record for run in runs for record in graded(run, [1.0] * len(run.plan))]
    a_journal(settings.data, *records, benchmark=EXAM)

    unsure = call(tmp_path, "evals prune")
    pruned = call(tmp_path, "evals prune --yes --json")
    again = call(tmp_path, "evals prune --yes")
    young = call(tmp_path, "evals prune --older-than 36500 --yes --json")

    # They were opened years ago, and a newer run of their model covers the same.
    gone = {("part-0", "demo/strong"), ("part-1", "demo/strong")}
    assert {(one["run_id"], one["model"]) for one in json.loads(pruned.stdout)} == gone
    assert (unsure.returncode, "Nothing was deleted" in unsure.stderr) == (2, True)
    assert again.stdout == "There is nothing to delete.\n"
    assert json.loads(young.stdout) == []
    left = {(run.run_id, run.model) for run in Journal(settings.journal).read(RUNS)}
    assert left == {(run.run_id, run.model) for run in runs} - gone


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("project")
    settings = settings_in(folder)
    runs = [taken(model, run_id) for model in MODELS for run_id in (DOOMED, OTHER, "cccc-3")]
    records = [record for run in runs for record in graded(run, [1.0] * 40)]
    a_journal(settings.data, *records, benchmark=EXAM)
    return folder


def test_whoever_can_not_be_asked_has_to_say_so(project: Path) -> None:
    words = call(project, "evals delete aaaa")
    as_json = call(project, "evals delete aaaa --json")

    for asked in (words, as_json):
        assert asked.returncode == 2
        assert "--yes" in asked.stderr
    assert json.loads(as_json.stdout)["ended"] == "wrong use"
    assert "demo/strong (simulated), experiment default, opened 2025-01-01 12:00 UTC: " in (
        words.stdout
    )
    assert call(project, "evals delete dddd --yes").returncode == 2


def test_a_terminal_is_asked_and_no_means_no(project: Path) -> None:
    with in_terminal(project, "evals delete cccc", columns=200) as terminal:
        terminal.wait_for("Delete it?")
        terminal.press("n\r")
        assert terminal.end() == 1

    assert "Nothing was deleted." in terminal.everything
    assert "cccc-3" in call(project, "evals query from/**/runs").stdout


@pytest.mark.parametrize("key", ["\x03", "\x04"], ids=["Ctrl-C", "Ctrl-D"])
def test_whoever_interrupts_the_question_deletes_nothing(project: Path, key: str) -> None:
    with in_terminal(project, "evals delete cccc", columns=200) as terminal:
        terminal.wait_for("Delete it?")
        terminal.press(key)
        assert terminal.end() == 130

    assert "Nothing was deleted." in terminal.everything
    assert "Aborted" not in terminal.everything
    assert "cccc-3" in call(project, "evals query from/**/runs").stdout


def test_a_deletion_leaves_a_trace_in_the_history_of_dagster(project: Path) -> None:
    asked = call(project, "evals delete demo/weak@bbbb --yes --json")

    assert asked.returncode == 0, asked.stderr
    (gone,) = json.loads(asked.stdout)
    assert (gone["run_id"], gone["model"], gone["predictions"]) == (OTHER, "demo/weak", 40)
    settings = Settings.from_env({"EVALS_SETTINGS": str(project / "eval_pipeline.toml")})
    with dagster_instance(settings) as instance:
        (record,) = instance.fetch_observations(dg.AssetKey("predictions"), limit=5).records
        observed = record.asset_observation
        assert observed is not None
        assert observed.partition == "demo/weak"
        assert observed.metadata["deleted_run"].value == OTHER
    again = call(project, "evals delete demo/weak@bbbb --yes")
    assert (again.returncode, "There is no run" in again.stderr) == (2, True)
