"""`evals import convex-scores`: what another backend has kept becomes runs of ours."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from eval_pipeline.evaluation.budget import SpendTracker
from eval_pipeline.evaluation.deletion import what_would_go
from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.interop.convex_scores import read
from eval_pipeline.interop.convex_scores.convert import convert
from eval_pipeline.interop.convex_scores.convert import steps_of as our_steps
from eval_pipeline.interop.convex_scores.load import import_scores
from eval_pipeline.interop.convex_scores.read import (
    EvalDocument,
    RunDocument,
    StepDocument,
    VersionDocument,
    read_scores,
)
from eval_pipeline.interop.convex_scores.versions import cohorts_of
from eval_pipeline.interop.remote.receive import Receiver
from eval_pipeline.journal import PREDICTIONS, Journal
from eval_pipeline.records.base import now
from eval_pipeline.records.prediction import Judgement
from eval_pipeline.records.run import Mode
from eval_pipeline.results.runs import State, find_runs, run_rows, runs_to_fix
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.sections import Budget
from eval_pipeline_tests.builders import (
    a_journal,
    a_model,
    a_run,
    a_task,
    settings_in,
    write_task,
)
from eval_pipeline_tests.convex_export import (
    START,
    TASKS,
    Documents,
    a_failed,
    a_passed,
    a_version,
    an_export,
    lines,
    of_questions,
    together,
    write_archive,
    write_folder,
    write_lines,
)
from eval_pipeline_tests.project import call


@pytest.fixture
def project(tmp_path: Path) -> Path:
    settings_in(tmp_path)
    return tmp_path


def imported(project: Path, path: Path, options: str = "") -> Any:
    done = call(project, f"evals import convex-scores {path} --json {options}")
    return json.loads(done.stdout)


def asked(project: Path, sql: str) -> list[tuple[Any, ...]]:
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        return db.sql(sql).fetchall()


def journalled(project: Path) -> dict[str, bytes]:
    root = project / "data" / "journal"
    files = (path for path in root.rglob("*") if path.is_file() and "locks" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in files}


FORMS: dict[str, Callable[[Path, Documents], Path]] = {
    "archive": lambda at, export: write_archive(at / "snapshot.zip", export),
    "folder": lambda at, export: write_folder(at / "snapshot", export),
    "lines that tell": lambda at, export: write_lines(at / "a.jsonl", export, telling=True),
    "lines": lambda at, export: write_lines(at / "b.jsonl", export, telling=False),
}


@pytest.mark.parametrize("form", FORMS)
def test_runs_are_on_the_leaderboard_whatever_form_they_come_in(project: Path, form: str) -> None:
    good = an_export(a_passed(), a_passed(), a_failed("tests fail (50%)"), run="good")
    poor = an_export(a_passed(), *[a_failed("tsc fail")] * 2, run="poor", model="acme/small")

    found = imported(project, FORMS[form](project, together(good, poor)))

    assert (found["new_runs"], found["predictions"], found["judgements"]) == (2, 6, 6)
    assert (found["left_out"], found["wrong"]) == ({}, 0)
    board = asked(
        project,
        "select rank, model, round(accuracy, 3), judge, experiment, cost_usd from leaderboard",
    )
    assert board == [
        (1, "acme/large", 0.667, "convex-evals", "default", 0.375),
        (2, "acme/small", 0.333, "convex-evals", "default", 0.375),
    ]
    assert asked(project, "select name, items from benchmark_versions where is_published") == [
        ("convex-evals vvvvvvvvvvvv", 3)
    ]


@pytest.mark.parametrize("form", FORMS)
def test_runs_of_questions_are_counted_and_nothing_of_them_is_wrong(
    project: Path, form: str
) -> None:
    export = together(an_export(a_passed(), a_passed(), a_passed()), of_questions())

    found = imported(project, FORMS[form](project, export))

    assert (found["new_runs"], found["wrong"]) == (1, 0)
    assert found["left_out"] == {"runs of questions, which are not coding evals": 1}
    assert len(found["versions"]) == 1


def test_an_eval_is_a_prediction_a_verdict_and_steps_of_ours(project: Path) -> None:
    export = an_export(a_passed(), a_failed("tsc fail"), a_failed("tests fail (50%)"))

    imported(project, write_archive(project / "s.zip", export))

    rows = asked(
        project,
        "select item_id, outcome, answer, input_tokens, output_tokens, reasoning_tokens, "
        "cached_tokens, cost_usd, cost_estimated, latency_s from predictions order by item_id",
    )
    assert rows[0] == (TASKS[0], "ok", None, 1000, 200, 50, 10, 0.125, False, 4.0)
    verdicts = asked(
        project, "select score, failed_step, reason, graded_by from judged order by item_id"
    )
    assert [(score, step) for score, step, _, _ in verdicts] == [
        (1.0, None),
        (0.0, "typecheck"),
        (0.0, "tests"),
    ]
    assert all(
        reason.endswith("is not part of the scores that were imported.")
        for _, _, reason, _ in verdicts
    )
    steps = asked(
        project,
        f"select step, status, reason, output, seconds from steps where item_id = '{TASKS[1]}' "
        "order by position",
    )
    assert [step for step, *_ in steps] == [
        *("filesystem", "install", "deploy", "typecheck", "lint", "tests")
    ]
    assert steps[3] == ("typecheck", "failed", "tsc failed:", "tsc failed:\ntsc fail", 0.5)
    shown = call(project, f"evals show run1 {TASKS[1]}").stdout
    assert "It can not be made again: the run was imported from convex-evals" in shown
    item = asked(
        project, f"select question, category, kind from items where item_id = '{TASKS[2]}'"
    )
    assert item == [(f"Do {TASKS[2]}.", "data", "coding")]


def test_importing_again_changes_nothing_and_a_later_export_adds_what_is_new(project: Path) -> None:
    early = an_export(a_passed(), a_passed(), {"kind": "running"}, status={"kind": "running"})
    late = an_export(a_passed(), a_passed(), a_failed("tests fail (0%)"))
    first = imported(project, write_archive(project / "early.zip", early))
    kept = journalled(project)
    assert first["left_out"] == {"evals that were not finished": 1}
    assert asked(
        project, "select complete, incomplete_because from metrics where slice = 'all'"
    ) == [(False, "1 not asked")]
    assert asked(project, "select count(*) from leaderboard") == [(0,)]

    again = imported(project, project / "early.zip")
    assert (again["new_runs"], again["predictions"], again["judgements"]) == (0, 0, 0)
    assert journalled(project) == kept

    more = imported(project, write_archive(project / "late.zip", late))
    assert (more["new_runs"], more["predictions"]) == (0, 1)
    assert journalled(project).items() > kept.items()
    assert asked(project, "select round(accuracy, 3) from leaderboard") == [(0.667,)]


def verdict_on(status: dict[str, Any]) -> Judgement:
    """What a single eval that ended so comes to."""
    export = an_export(status)
    (one,) = (EvalDocument.model_validate(document) for document in export["evals"])
    steps = [StepDocument.model_validate(document) for document in export["steps"]]
    prediction, judgement = convert(a_run(), a_task(TASKS[0]), one, steps)
    assert prediction.outcome is judgement.outcome
    assert prediction.answer is None
    return judgement


@pytest.mark.parametrize(
    ("reason", "outcome"),
    [
        ("[rate_limit] error: slow down", "rate_limited"),
        ("[infrastructure] empty provider response", "empty"),
        ("[infrastructure] request timed out", "timeout"),
        ("[infrastructure] overloaded", "server_error"),
        ("error: AI_APICallError: 503", "server_error"),
        ("error: 429 from upstream", "rate_limited"),
        ("install: bun install timed out after 120s", "sandbox_error"),
        ("deploy: fetch failed ECONNREFUSED", "sandbox_error"),
    ],
)
def test_an_outage_there_has_no_score_here(reason: str, outcome: str) -> None:
    found = verdict_on(a_failed(reason))

    assert (found.outcome, found.score) == (outcome, None)


@pytest.mark.parametrize(
    "reason",
    [
        "error: This model's context is too short",
        "tests: an eval named rate_limit",
        "tests: vitest timed out after 300s",
        "eslint fail",
        "filesystem: empty parsed model output",
    ],
)
def test_what_the_model_failed_at_there_is_a_0_here(reason: str) -> None:
    found = verdict_on(a_failed(reason))

    assert (found.outcome, found.score) == ("ok", 0.0)
    assert found.reason.startswith(reason)


def test_what_contradicts_itself_has_no_score() -> None:
    export = an_export(a_failed("tsc fail"))
    (one,) = (
        EvalDocument.model_validate({**document, "status": a_passed()})
        for document in export["evals"]
    )
    steps = [StepDocument.model_validate(document) for document in export["steps"]]

    found = convert(a_run(), a_task(TASKS[0]), one, steps).judgement

    assert found.score is None
    assert "typecheck to have failed" in found.reason


def test_a_run_that_failed_there_as_a_whole_counts_nowhere(project: Path) -> None:
    gone = {"kind": "failed", "failureReason": "[infrastructure] [zero_tokens]", "durationMs": 1.0}
    export = an_export(a_passed(), a_passed(), a_passed(), status=gone)

    imported(project, write_archive(project / "s.zip", export))

    assert asked(project, "select distinct outcome, score from judged") == [
        ("internal_error", None)
    ]
    assert asked(project, "select count(*) from leaderboard") == [(0,)]
    assert asked(project, "select count(*) from steps") == [(18,)]


def test_a_run_that_had_not_ended_is_incomplete_even_if_all_its_evals_had(project: Path) -> None:
    done = (a_passed(), a_passed(), a_passed())
    running = an_export(*done, status={"kind": "running"})

    found = imported(project, write_archive(project / "early.zip", running))
    assert found["left_out"] == {"evals of runs that had not ended": 3}
    assert asked(project, "select complete from metrics where slice = 'all'") == [(False,)]

    assert imported(project, write_archive(project / "s.zip", an_export(*done)))["predictions"] == 3
    assert asked(project, "select accuracy from leaderboard") == [(1.0,)]


def test_damaged_lines_are_told_and_the_rest_is_imported(project: Path) -> None:
    export = an_export(a_passed(), a_passed(), a_passed())
    whole = write_lines(project / "s.jsonl", export, telling=False).read_bytes()
    damaged = b"".join(
        (
            b'{"evalPath": "x/y", "_id": 5}\n',
            b"[1, 2]\n{\n\n" + b"[" * 5000 + b"\n",
            b'{"colour": "red"}\n',
            whole,
            b'{"_id": "r9", "_creationTime": 1e99, "plannedEvals": []}\n',
            b'{"_id": "torn", "plannedEv',
        )
    )
    (project / "s.jsonl").write_bytes(damaged)

    done = call(project, "evals import convex-scores s.jsonl")

    assert done.returncode == 1
    assert "s.jsonl, line 1: " in done.stderr
    assert done.stderr.count("s.jsonl, line ") == 7
    assert "1 runs, 1 of them new; 3 new predictions" in done.stdout
    assert asked(project, "select accuracy from leaderboard") == [(1.0,)]


def test_nothing_in_an_archive_is_taken_for_a_path_or_unpacked(project: Path) -> None:
    export = an_export(a_passed(), a_passed(), a_passed())
    (project / "data" / ".importing-999999999-left").mkdir(parents=True)
    evil = {"../../evil": b"x", "/etc/evil": b"x", "_storage/a/documents.jsonl": b"{"}
    before = {*project.rglob("*")}

    found = imported(project, write_archive(project / "s.zip", export, evil))

    assert (found["new_runs"], found["wrong"]) == (1, 0)
    new = {path for path in {*project.rglob("*")} - before if "data" not in path.parts}
    assert new == {project / "s.zip"}
    assert not list((project / "data").glob(".importing-*"))


def test_a_bomb_and_endless_lines_are_refused(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = an_export(a_passed(), a_passed(), a_passed())
    long = b'{"task": "' + b"x" * 5000 + b'"}\n'
    monkeypatch.setattr(read, "LONGEST_LINE", 2000)
    export["runs"] *= 1000
    bomb = write_archive(project / "s.zip", export)
    (project / "long.jsonl").write_bytes(long + lines(export["runs"][:1]))

    told = list(read_scores(project / "long.jsonl"))
    monkeypatch.setattr(read, "MOST_BYTES", 50_000)

    assert [bool(one.wrong) for one in told] == [True, False]
    with pytest.raises(read.ScoresError, match="are not read"):
        list(read_scores(bomb))
    (project / "torn.zip").write_bytes(bomb.read_bytes()[:-60])
    refused = call(project, "evals import convex-scores torn.zip")
    assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)


@pytest.mark.parametrize("path", ["nowhere.zip", "empty"])
def test_what_is_no_export_is_told(project: Path, path: str) -> None:
    (project / "empty").mkdir()

    refused = call(project, f"evals import convex-scores {path}")

    assert refused.returncode == 2
    assert path in refused.stderr


def test_halves_of_characters_and_wrong_types_do_no_harm(project: Path) -> None:
    usage = {"inputTokens": "many", "outputTokens": -3, "raw": {"cost": "free"}}
    odd = a_failed("tests fail \ud800 (5%)", usage=usage, durationMs="long")

    found = imported(project, write_archive(project / "s.zip", an_export(odd, a_passed(usage=[]))))

    assert found["wrong"] == 0
    assert asked(project, "select input_tokens, cost_usd from predictions") == [(None, None)] * 2


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.FIX, Mode.FRESH])
def test_nobody_here_goes_on_with_what_was_imported(tmp_path: Path, mode: Mode) -> None:
    settings = settings_in(tmp_path)
    export = an_export(a_passed(), a_failed("[rate_limit]"), a_passed(), model="demo/strong")
    receiver = Receiver(Warehouse(settings.database, Journal(settings.journal)))
    import_scores(write_archive(tmp_path / "s.zip", export), receiver, settings, publish=True)

    launch, judge_model = Launch("later", mode), a_model("demo/judge")
    (tally,) = asyncio.run(
        judge(["demo/strong"], [judge_model], launch, settings=settings, journal=receiver.journal)
    )

    assert (tally.planned, tally.runs) == (0, [])
    with receiver.warehouse.reading() as db:
        assert runs_to_fix(db, ["demo/judge"]) == []
        (standing,) = run_rows(db, ())
    assert (standing["state"], standing["next_step"]) == (State.FAILED, None)
    assert asked(tmp_path, "select distinct suite from dataset") == [("sample",)]


def test_what_others_paid_today_counts_in_no_budget_of_ours(tmp_path: Path) -> None:
    today = now().timestamp() * 1000
    export = an_export(*[a_passed()] * 3, _creationTime=today)
    for one in export["evals"]:
        one["_creationTime"] = today
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    receiver = Receiver(Warehouse(settings.database, journal))
    import_scores(write_archive(tmp_path / "a.zip", export), receiver, settings)

    account = SpendTracker(Budget(usd_per_day=1, usd_per_run=1), journal).run_budget(
        "run1", "acme/large"
    )

    assert sum(one.usage.cost_usd or 0 for one in journal.read(PREDICTIONS)) == 0.375
    assert [purse.spent_usd for purse in account.limits] == [0, 0]
    with receiver.warehouse.reading() as db:
        (doomed,) = what_would_go(db, find_runs(db, "run1"))
    assert doomed.cost_usd == 0


def test_ours_is_what_is_asked_and_published_once_it_is_minted(project: Path) -> None:
    later = a_version(effectiveAt=START + 10**10)
    export = an_export(a_passed(), a_passed(), a_passed())
    imported(project, write_archive(project / "s.zip", {**export, "benchmarkVersions": [later]}))

    assert asked(project, "select suite from benchmark_versions where is_current") == [("sample",)]
    assert call(project, "evals benchmark mint").returncode == 0
    assert call(project, "evals rebuild").returncode == 0
    assert asked(project, "select suite from benchmark_versions where is_published") == [
        ("sample",)
    ]


def test_without_publishing_the_leaderboard_stays_about_ours(project: Path) -> None:
    export = write_archive(project / "s.zip", an_export(a_passed(), a_passed(), a_passed()))

    imported(project, export, "--no-publish")
    assert asked(project, "select suite from benchmark_versions where is_published") == [
        ("sample",)
    ]

    imported(project, export)
    published = "select suite from benchmark_versions where is_published"
    assert asked(project, published) == [("convex-evals",)]


def test_where_there_are_runs_of_our_own_only_who_says_so_publishes(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    receiver = Receiver(Warehouse(settings.database, a_journal(settings.data, a_run())))
    path = write_archive(tmp_path / "s.zip", an_export(a_passed(), a_passed(), a_passed()))

    assert import_scores(path, receiver, settings).published is False
    assert asked(tmp_path, "select count(*) from leaderboard") == [(0,)]


def test_tasks_of_the_settings_are_used_where_they_are_the_same(tmp_path: Path) -> None:
    coding = {"name": "convex", "path": "evals", "kind": "coding"}
    for number, task in enumerate(TASKS[:2]):
        folder = write_task(tmp_path / "evals", task, number)
        (folder / "TASK.txt").write_text(f"Do {TASKS[0]}.\n")
    settings = settings_in(tmp_path, suites=[coding])
    receiver = Receiver(Warehouse(settings.database, Journal(settings.journal)))
    path = write_archive(tmp_path / "s.zip", an_export(a_passed(), a_passed(), a_passed()))

    import_scores(path, receiver, settings)

    rows = asked(
        tmp_path,
        "select suite, item_id, question, answer <> '{}' from items join benchmark_versions "
        "using (suite, suite_version) where is_published order by item_id",
    )
    assert rows == [
        ("convex", TASKS[0], f"Do {TASKS[0]}.", True),
        ("convex", TASKS[1], f"Do {TASKS[1]}.", False),
        ("convex", TASKS[2], f"Do {TASKS[2]}.", False),
    ]
    versions = asked(tmp_path, "select is_current, is_published from benchmark_versions order by 1")
    assert versions == [(False, True), (True, False)]


def a_run_document(name: str, planned: int, version: str | None = None) -> RunDocument:
    return RunDocument.model_validate(
        {
            "_id": name,
            "_creationTime": START + ord(name),
            "plannedEvals": [f"c/{number}" for number in range(planned)],
            "benchmarkVersion": version,
            "status": {"kind": "completed"},
        }
    )


def test_without_versions_each_larger_plan_begins_one_and_parts_belong_to_the_last() -> None:
    runs = [a_run_document(name, size) for name, size in zip("abcde", (5, 5, 2, 7, 5), strict=True)]

    found = cohorts_of(runs, {})

    sizes = [len(found[run.id].tasks) for run in runs]
    assert sizes == [5, 5, 5, 7, 7]
    assert all(one.minted for one in found.values())


def test_with_versions_the_size_of_each_tells_what_is_all_of_it() -> None:
    version = VersionDocument.model_validate(a_version("h" * 64, 5.0))
    unminted = VersionDocument.model_validate(
        a_version("unminted", 0.0, provenance="unminted", _id="none")
    )
    versions = {one.id: one for one in (version, unminted)}
    runs = [
        a_run_document("a", 2, version.id),
        a_run_document("b", 5, version.id),
        a_run_document("c", 9, "none"),
    ]

    found = cohorts_of(runs, versions)

    assert [len(found[run.id].tasks) for run in runs] == [5, 5, 9]
    assert [found[run.id].minted for run in runs] == [True, True, False]


def test_of_a_step_that_was_taken_twice_the_last_counts() -> None:
    taken = [
        StepDocument.model_validate(
            {"_id": "s", "_creationTime": START, "evalId": "e", "name": "tests", "status": status}
        )
        for status in ({"kind": "running"}, {"kind": "passed", "durationMs": 5.0})
    ]

    assert [(one.name, one.status) for one in our_steps(taken)] == [("tests", "passed")]
    assert [one.status for one in our_steps(taken[:1])] == ["error"]
