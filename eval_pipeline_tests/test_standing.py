"""Which judge stands for a run, and what is left to do in it: one rule for every command."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.cli.menu import unfinished_launches
from eval_pipeline.evaluation.grading import graders_of
from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.gateways.pool import Gateways
from eval_pipeline.journal import ATTEMPTS, SIGHTINGS, Journal
from eval_pipeline.journal.locks import hold_run_lock, running_run_ids
from eval_pipeline.records.model import Model, Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Attempt, Mode, Run
from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import (
    failed_replies,
    model_rows,
    named_judges,
    other_rows_to_fix,
    run_rows,
    runs_to_fix,
)
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runtime import run_async
from eval_pipeline.settings.sections import Judge
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    settings_in,
)
from eval_pipeline_tests.stand import JUDGE, STRONG, Stand

EXAM = a_benchmark(*(a_question(f"q{number}") for number in (1, 2, 3, 4)))
PLAN = list(EXAM.items)
OTHER = a_model("other/judge", request_name="demo/judge", gateway="other")
BOTH = ("demo/judge", "other/judge")
RIGHT, WRONG, FAILED, UNDECIDED = 1.0, 0.0, None, "undecided"
Scores = Sequence[float | str | None]


def a_whole_run(run_id: str = "run-1", hour: int = 0, **changes: object) -> Run:
    version = EXAM.version.benchmark_version
    at = NOON + timedelta(hours=hour)
    return a_run(run_id, "demo/strong", PLAN, benchmark_version=version, opened_at=at, **changes)


def replies(run: Run, number: int = len(PLAN)) -> list[Prediction]:
    return [a_prediction(key.item_id, run_id=run.run_id) for key in PLAN[:number]]


def verdicts(
    given: Sequence[Prediction], name: str, scores: Scores, *, version: str = "v1", minute: int = 1
) -> list[Judgement]:
    """What a judge says of the first replies, one score each."""
    about = {"judge_version": version, "finished_at": NOON + timedelta(minutes=minute)}
    return [
        a_judgement(one, None, judge=name, outcome=score, **about)
        if isinstance(score, str)
        else a_judgement(one, score, judge=name, **about)
        for one, score in zip(given, scores, strict=False)
    ]


def complete(run: Run) -> list[Run | Prediction | Judgement]:
    given = replies(run)
    return [run, *given, *verdicts(given, "demo/judge", [RIGHT] * 4)]


@contextmanager
def published(
    folder: Path, *records: Run | Prediction | Judgement
) -> Iterator[duckdb.DuckDBPyConnection]:
    journal = a_journal(folder, *records, benchmark=EXAM)
    seen = [Sighting(model=a_model("demo/strong"), selected=True, seen_at=NOON)]
    journal.write_whole(SIGHTINGS, "1", records=seen)
    warehouse = Warehouse(folder / "evals.duckdb", journal)
    warehouse.publish()
    with warehouse.reading() as db:
        yield db


def how_it_stands(
    db: duckdb.DuckDBPyConnection, judges: Sequence[str]
) -> tuple[str, str | None, bool, bool]:
    """The state of the only run, what to do, and whether `fix` and the menu name it."""
    (row,) = run_rows(db, (), judges=judges)
    return (
        row["state"],
        row["next_step"],
        bool(runs_to_fix(db, judges)),
        bool(unfinished_launches(db, judges)),
    )


DONE = ("complete", None, False, False)
TO_JUDGE = ("to judge", "evals fix run-1 --judge", True, True)
CAN_NOT_TELL = ("to judge", None, False, False)
ALL, HALF, IN_VAIN = [RIGHT] * 4, [RIGHT] * 2, [FAILED] * 4


@pytest.mark.parametrize(
    ("judges", "judged", "stands"),
    [
        # Nobody has judged.
        (["demo/judge"], [], TO_JUDGE),
        ([], [], TO_JUDGE),
        # Several judges: each finishes what it has begun.
        (BOTH, [("demo/judge", "v1", ALL), ("other/judge", "v1", ALL)], DONE),
        (BOTH, [("demo/judge", "v1", ALL), ("other/judge", "v1", IN_VAIN)], TO_JUDGE),
        (BOTH, [("demo/judge", "v1", IN_VAIN), ("other/judge", "v1", ALL)], TO_JUDGE),
        (BOTH, [("demo/judge", "v1", ALL), ("other/judge", "v1", HALF)], TO_JUDGE),
        # One that was named later, and has not begun, leaves the run as it is.
        (BOTH, [("demo/judge", "v1", ALL)], DONE),
        (BOTH, [("third/judge", "v1", ALL)], DONE),
        (BOTH, [("third/judge", "v1", HALF)], TO_JUDGE),
        # Who is no longer named leaves nothing to do.
        (BOTH, [("demo/judge", "v1", ALL), ("third/judge", "v1", IN_VAIN)], DONE),
        (["demo/judge"], [("demo/judge", "v1", ALL), ("other/judge", "v1", IN_VAIN)], DONE),
        # Nor does an older version; the newest one does.
        (BOTH, [("demo/judge", "v1", HALF), ("demo/judge", "v2", ALL)], DONE),
        (BOTH, [("demo/judge", "v1", ALL), ("demo/judge", "v2", HALF)], TO_JUDGE),
        # A single judge leaves alone what anybody has judged as a whole.
        (["demo/judge"], [("other/judge", "v1", ALL), ("demo/judge", "v1", HALF)], DONE),
        (["demo/judge"], [("demo/judge", "v1", ALL), ("demo/judge", "v2", HALF)], DONE),
        (["demo/judge"], [("other/judge", "v1", HALF)], TO_JUDGE),
        (["demo/judge"], [("demo/judge", "v1", HALF)], TO_JUDGE),
        # What the rules can not decide stays so, until a judge is named.
        (["rules"], [("rules", "v1", [RIGHT, RIGHT, RIGHT, UNDECIDED])], CAN_NOT_TELL),
        (["rules"], [("rules", "v1", [RIGHT, UNDECIDED])], TO_JUDGE),
        (["rules+a/b"], [("rules", "v1", [RIGHT, RIGHT, RIGHT, UNDECIDED])], TO_JUDGE),
        # Code alone stands under a name that no settings have.
        (["demo/judge"], [("steps", "v1", HALF)], TO_JUDGE),
        (BOTH, [("steps", "v1", ALL)], DONE),
    ],
)
def test_a_run_is_to_be_judged_while_a_named_judge_would_do_something(
    tmp_path: Path,
    judges: Sequence[str],
    judged: Sequence[tuple[str, str, Scores]],
    stands: tuple[str, str | None, bool, bool],
) -> None:
    run = a_whole_run()
    given = replies(run)
    told = [
        one
        for minute, (name, version, scores) in enumerate(judged)
        for one in verdicts(given, name, scores, version=version, minute=minute)
    ]

    with published(tmp_path, run, *given, *told) as db:
        found = how_it_stands(db, judges)

    assert found == stands


@pytest.fixture
def other(stand: Stand) -> Iterator[DemoGateway]:
    """A second gateway, whose judge the settings of the stand name too."""
    with DemoGateway([]) as server:
        both = [
            {"name": "demo", "kind": "demo", "base_url": stand.gateway.base_url},
            {"name": "other", "kind": "demo", "base_url": server.base_url},
        ]
        judges = {"model": BOTH[0], "also": BOTH[1:]}
        stand.settings = stand.settings.overridden({"gateways": both, "judge": judges})
        yield server


def judge_by_both(stand: Stand, mode: Mode) -> None:
    launch = Launch("judging", mode)
    work = judge(
        ["demo/strong"],
        [JUDGE, OTHER],
        launch,
        settings=stand.settings,
        journal=stand.journal,
    )
    run_async(work)


def state_at(stand: Stand) -> tuple[str, str | None, bool, bool]:
    warehouse = Warehouse(stand.settings.database, stand.journal)
    warehouse.publish()
    with warehouse.reading() as db:
        return how_it_stands(db, named_judges(stand.settings.judge))


def test_a_run_of_which_one_of_two_judges_failed_is_to_be_judged_until_that_one_has(
    stand: Stand, other: DemoGateway
) -> None:
    stand.predict(STRONG)
    other.misbehave(Faults(server_error=1))
    judge_by_both(stand, Mode.AUTO)
    before = state_at(stand)
    other.misbehave(Faults())

    judge_by_both(stand, Mode.FIX)

    assert before == TO_JUDGE
    assert state_at(stand) == DONE


@pytest.mark.parametrize(
    "chosen",
    [
        {"model": "demo/judge"},
        {"model": "demo/judge", "also": ["other/judge"]},
        {"model": "demo/judge", "also": ["other/judge"], "rules": "first"},
        {"model": "demo/judge", "rules": "only"},
    ],
)
def test_judges_have_the_names_that_their_verdicts_have(
    tmp_path: Path, chosen: dict[str, Any]
) -> None:
    gateways = [{"name": name, "kind": "demo"} for name in ("demo", "other")]
    settings = settings_in(tmp_path, judge=chosen, gateways=gateways)

    names = run_async(_names(settings, [JUDGE, OTHER][: len(settings.judge.models)]))

    assert list(named_judges(settings.judge)) == names


async def _names(settings: Settings, judges: Sequence[Model]) -> list[str]:
    async with Gateways(settings) as gateways:
        return [one.judge for one in graders_of(judges, settings, gateways, "launch")]


def test_without_a_judge_none_is_named() -> None:
    assert named_judges(Judge()) == ()


PREFERENCES = [
    # The version with the most scores; at the same number, the one last at work.
    ([("a", "v1", [WRONG] * 3), ("b", "v1", [RIGHT] * 2)], 0.0),
    ([("a", "v1", [RIGHT] * 2), ("b", "v1", [WRONG] * 3)], 0.0),
    ([("a", "v1", [WRONG] * 3), ("b", "v1", [RIGHT] * 3)], 1.0),
    # One that is complete, the later one of two.
    ([("a", "v1", [RIGHT] * 4), ("b", "v1", [WRONG] * 3)], 1.0),
    ([("a", "v1", [RIGHT] * 4), ("b", "v1", [WRONG] * 4)], 0.0),
]


def accuracies(db: duckdb.DuckDBPyConnection, run_id: str) -> dict[str, Any]:
    """What each command says of the newest run."""
    given = {"runs": [run_id], "models": ["demo/strong"]}
    (launched,) = rows(query(db, "summaries/launched", given))
    ((_, offered, _),) = query(db, "summaries/latest_accuracy").fetchall()
    return {
        "status": run_rows(db, (), latest=True)[0]["accuracy"],
        "run": launched["accuracy"],
        "models": model_rows(db)[0]["accuracy"],
        "menu": offered,
    }


@pytest.mark.parametrize(("judged", "accuracy"), PREFERENCES)
def test_all_commands_show_the_same_accuracy_of_a_run(
    tmp_path: Path, judged: Sequence[tuple[str, str, Scores]], accuracy: float
) -> None:
    run = a_whole_run(scope="filtered")  # so that no version is official
    given = replies(run)
    told = [
        one
        for minute, (name, version, scores) in enumerate(judged)
        for one in verdicts(given, name, scores, version=version, minute=minute)
    ]

    with published(tmp_path, run, *given, *told) as db:
        shown = accuracies(db, "run-1")
        wrong = failed_replies(db, run_rows(db, ()))

    assert set(shown.values()) == {accuracy}
    assert bool(wrong) is (accuracy == 0.0)


def test_the_official_version_stands_before_one_with_more_scores(tmp_path: Path) -> None:
    first, second = a_whole_run(), a_whole_run("run-2", hour=1)
    earlier, later = replies(first), replies(second)
    official = verdicts(earlier, "a", [RIGHT] * 4)
    partly = verdicts(later, "a", [RIGHT] * 2)
    trial = verdicts(later, "a", [WRONG] * 3, version="v2", minute=2)

    with published(tmp_path, first, second, *earlier, *later, *official, *partly, *trial) as db:
        shown = accuracies(db, "run-2")

    assert set(shown.values()) == {1.0}


def ids(runs: Sequence[Any]) -> list[str]:
    return [run.run_id for run in runs]


def test_an_unfinished_run_of_everything_is_not_hidden_by_a_newer_one_of_a_part(
    tmp_path: Path,
) -> None:
    whole, part = a_whole_run("whole"), a_whole_run("part", hour=1, scope="filtered")

    with published(tmp_path, whole, *replies(whole, 1), *complete(part)) as db:
        found = runs_to_fix(db, ["demo/judge"])
        latest = run_rows(db, (), latest=True)
        others = other_rows_to_fix(db, (), latest, ["demo/judge"])

    assert ids(found) == ["whole"]
    assert [row["run_id"] for row in latest] == ["part"]
    assert [(row["run_id"], row["state"]) for row in others] == [("whole", "unfinished")]


@pytest.mark.parametrize("scope", ["full", "filtered"])
def test_of_runs_of_one_scope_only_the_latest_is_to_be_fixed(tmp_path: Path, scope: str) -> None:
    older, newer = a_whole_run("older", scope=scope), a_whole_run("newer", hour=1, scope=scope)

    with published(tmp_path, older, *complete(newer)) as db:
        hidden = runs_to_fix(db, ["demo/judge"])
    with published(tmp_path, a_whole_run("newest", hour=2, scope=scope)) as db:
        found = runs_to_fix(db, ["demo/judge"])

    assert hidden == []
    assert ids(found) == ["newest"]


def test_experiments_are_fixed_apart(tmp_path: Path) -> None:
    hot = a_whole_run("hot", experiment="hot")

    with published(tmp_path, hot, *complete(a_whole_run("newer", hour=1))) as db:
        found = runs_to_fix(db, ["demo/judge"])

    assert ids(found) == ["hot"]


@pytest.mark.parametrize("launch", ["run-1", "another"])
def test_a_run_at_work_is_not_to_be_fixed(tmp_path: Path, launch: str) -> None:
    attempt = Attempt(
        run_id="another",
        model="demo/strong",
        experiment="default",
        filtered=False,
        repair=True,
        began_at=NOON,
    )
    journal = Journal(tmp_path / "journal")
    journal.write_whole(ATTEMPTS, attempt.model, attempt.run_id, records=[attempt])

    with published(tmp_path, a_whole_run()) as db:
        with hold_run_lock(journal.root, launch):
            at_work = running_run_ids(journal.root)
            during = runs_to_fix(db, (), at_work), unfinished_launches(db, (), at_work)
        at_work = running_run_ids(journal.root)
        after = runs_to_fix(db, (), at_work), unfinished_launches(db, (), at_work)

    assert during == ([], [])
    assert [ids(found) for found in after] == [["run-1"], ["run-1"]]


def test_a_run_that_is_being_judged_is_not_to_be_fixed(tmp_path: Path) -> None:
    run = a_whole_run()
    given = replies(run)
    told = [a_judgement(given[0], launch="judging")]

    with published(tmp_path, run, *given, *told) as db:
        during, after = (runs_to_fix(db, (), at_work) for at_work in (["judging"], []))

    assert during == []
    assert ids(after) == ["run-1"]
