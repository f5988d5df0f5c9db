"""The stage `judged` over coding tasks: beside questions, alone, and where none can be graded."""

import json
import logging
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from eval_pipeline.evaluation.grading import CodeReviewer, ModelJudge
from eval_pipeline.evaluation.judge import judge
from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.requests import ModelClient
from eval_pipeline.evaluation.workers import WorkerPool
from eval_pipeline.gateways.chat import Asked, ChatReply, ChatRequest
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.gateways.structured import ReplyFormats
from eval_pipeline.journal import ITEMS, Journal
from eval_pipeline.records.coding import TaskConfig
from eval_pipeline.records.model import Prices
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import Mode
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runtime import Halted, run_async
from eval_pipeline.suites.benchmark import keep, load_benchmark
from eval_pipeline.suites.coding.judge import ReviewError
from eval_pipeline_tests.builders import a_model, a_task, settings_in, write_task
from eval_pipeline_tests.coding_stand import lend_toolchains
from eval_pipeline_tests.stand import JUDGE, STRONG, WEAK, Stand, outcomes

CODING = {"name": "coding", "kind": "coding", "path": "tasks"}
SAMPLE = {"name": "sample", "path": "questions.jsonl"}


@pytest.fixture
def tasks(tmp_path: Path) -> Path:
    """Two tasks that want a number, of which the simulated strong model solves both."""
    for number in (7, 8):
        write_task(tmp_path / "tasks", f"001-numbers/00{number}-number", number)
    lend_toolchains(tmp_path / "data")
    return tmp_path / "tasks"


def a_stand(folder: Path, **changes: Any) -> Iterator[Stand]:
    settings = settings_in(folder, **changes)
    items = load_benchmark(settings).items
    with DemoGateway(tuple(items.values())) as gateway:
        yield Stand(folder, gateway, **changes)


@pytest.fixture
def alone(tmp_path: Path, tasks: Path) -> Iterator[Stand]:
    yield from a_stand(tmp_path, suites=[CODING])


@pytest.fixture
def beside(tmp_path: Path, tasks: Path) -> Iterator[Stand]:
    yield from a_stand(tmp_path, suites=[SAMPLE, CODING])


def rows(stand: Stand, sql: str) -> list[tuple[Any, ...]]:
    warehouse = Warehouse(stand.settings.database, Journal(stand.settings.journal))
    warehouse.publish()
    with warehouse.reading() as db:
        return db.sql(sql).fetchall()


def test_where_there_is_only_code_no_judge_is_needed(alone: Stand) -> None:
    alone.predict(WEAK, STRONG)

    tallies = run_async(
        judge(
            ["demo/strong", "demo/weak"],
            [],
            Launch("judging"),
            settings=alone.settings.overridden({"judge": {"model": None}}),
            journal=alone.journal,
        )
    )

    assert outcomes(tallies) == [{Outcome.OK: 2}, {Outcome.OK: 2}]
    assert alone.gateway.requests["demo/judge"] == 0
    told = rows(
        alone,
        "select distinct judge, graded_by, isolation, tests_told_by, toolchain like 'python-%' "
        "from judged where graded_by is not null",
    )
    assert told == [("steps", "steps", "bwrap", "oracle", True)]


def test_the_steps_of_every_answer_are_in_the_database(alone: Stand) -> None:
    alone.predict(STRONG)

    alone.judge("demo/strong")

    steps = rows(alone, "select step, status from steps where item_id like '%7%' order by position")
    assert steps == [
        (step, "passed") for step in ("filesystem", "install", "typecheck", "lint", "tests")
    ]
    (graded,) = rows(
        alone, "select tests_passed, tests_total, failed_step from judged where item_id like '%7%'"
    )
    assert graded == (2, 2, None)


def test_code_is_graded_beside_the_judges_work_and_counts_with_it(beside: Stand) -> None:
    beside.predict(STRONG)

    tallies = beside.judge("demo/strong")

    assert outcomes(tallies) == [{Outcome.OK: 5}]
    graded = rows(beside, "select suite, judge, graded_by, count(*) from judged group by all")
    assert sorted(graded) == [
        ("coding", "demo/judge", "steps", 2),
        ("sample", "demo/judge", "demo/judge", 3),
    ]
    (whole,) = rows(beside, "select judged, complete from metrics where slice = 'all'")
    assert whole == (5, True)


def test_questions_without_a_judge_are_refused_before_anything_is_graded(beside: Stand) -> None:
    beside.predict(STRONG)

    (tally,) = run_async(
        judge(["demo/strong"], [], Launch("j"), settings=beside.settings, journal=beside.journal)
    )

    assert tally.failed
    assert "need a judge: name one in judge.model" in (tally.stopped or "")


def test_a_toolchain_that_is_not_prepared_is_told_and_nothing_is_scored(alone: Stand) -> None:
    alone.predict(STRONG)
    (alone.settings.data / "toolchains").unlink()

    (tally,) = alone.judge("demo/strong")
    lend_toolchains(alone.settings.data)
    later = alone.judge("demo/strong")

    assert tally.failed
    assert "evals toolchain prepare python" in (tally.stopped or "")
    assert outcomes(later) == [{Outcome.OK: 2}]
    assert len(alone.judgements()) == 2


def test_without_a_sandbox_code_is_refused_with_both_ways_out(
    alone: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone.predict(STRONG)
    monkeypatch.setattr("eval_pipeline.evaluation.grading.open_sandbox", _no_bwrap)

    (tally,) = alone.judge("demo/strong")

    assert tally.failed
    assert "container" in (tally.stopped or "")
    assert "--unsafe-no-sandbox" in (tally.stopped or "")
    assert not alone.judgements()


def test_a_task_whose_reference_fails_here_scores_nobody(alone: Stand, tasks: Path) -> None:
    answer = tasks / "001-numbers" / "007-number" / "answer" / "answer.py"
    answer.write_text(answer.read_text().replace("return 7", "return 0"))
    keep(load_benchmark(alone.settings), alone.journal)
    alone.predict(STRONG)

    alone.judge("demo/strong")

    scores = rows(alone, "select item_id, outcome, score from judged order by item_id")
    assert scores == [
        ("001-numbers/007-number", "sandbox_error", None),
        ("001-numbers/008-number", "ok", 1.0),
    ]
    (whole,) = rows(alone, "select complete, incomplete_because from metrics where slice = 'all'")
    assert whole == (False, "1 not judged (sandbox_error)")


@pytest.mark.slow
def test_a_changed_grader_grades_its_own_answers_anew_and_no_others(
    alone: Stand, tasks: Path
) -> None:
    alone.predict(STRONG)
    alone.judge("demo/strong")
    asked = alone.gateway.requests["demo/strong"]
    grader = tasks / "001-numbers" / "007-number" / "grader" / "test_answer.py"
    grader.write_text(grader.read_text() + "\n\ndef test_again() -> None:\n    test_number()\n")
    keep(load_benchmark(alone.settings), alone.journal)

    alone.predict(STRONG, launch=Launch("run-2"))
    alone.judge("demo/strong")

    assert alone.gateway.requests["demo/strong"] == asked
    verdicts = rows(
        alone,
        "select item_id, carried_from is not null, tests_total from judged "
        "where run_id = 'run-2' order by item_id",
    )
    assert verdicts == [
        ("001-numbers/007-number", False, 3),
        ("001-numbers/008-number", True, 2),
    ]


@pytest.mark.slow
def test_judging_afresh_grades_again_what_was_graded(
    alone: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    alone.predict(STRONG)
    alone.judge("demo/strong")
    kept = sorted((alone.settings.data / "graded").iterdir())
    before = {path: path.stat().st_mtime_ns for path in kept}

    with caplog.at_level(logging.INFO):
        again = alone.judge("demo/strong", launch=Launch("anew", Mode.FRESH))

    assert outcomes(again) == [{Outcome.OK: 2}]
    assert all(path.stat().st_mtime_ns > before[path] for path in kept)


def test_a_reviewer_is_asked_about_code_that_has_passed(tmp_path: Path, tasks: Path) -> None:
    write_task(tasks, "001-numbers/009-number", 9, review=["It is short."])

    for stand in a_stand(tmp_path, suites=[CODING]):
        stand.predict(STRONG)
        run_async(
            judge(
                ["demo/strong"],
                [JUDGE],
                Launch("judging"),
                settings=stand.settings,
                journal=stand.journal,
                reviewer=a_model("demo/judge", prices=Prices(prompt=1e-6, completion=1e-6)),
            )
        )
        (reviewed,) = rows(
            stand,
            "select tests_total, score, cost_usd > 0 from judged where item_id like '%9%'",
        )

        assert stand.gateway.requests["demo/judge"] == 1
        assert reviewed == (3, 1.0, True)


def test_items_that_are_gone_stop_the_tally_and_nothing_else(alone: Stand) -> None:
    alone.predict(STRONG)
    alone.judge("demo/strong")
    for path in alone.journal.files(ITEMS, "coding"):
        path.unlink()

    (tally,) = alone.judge("demo/strong", launch=Launch("again", Mode.FRESH))

    assert tally.failed
    assert "but not its items" in (tally.stopped or "")


def test_what_a_stopped_review_has_cost_is_not_lost() -> None:
    async def ask_once(request: ChatRequest, pool: object) -> Asked:
        if "It is short." not in str(request.messages):
            raise Halted
        verdict = {"extracted_answer": None, "reasoning": "", "correct": True, "confidence": None}
        return Asked(ChatReply(json.dumps(verdict), 0.1), None, 1, Usage(cost_usd=0.25))

    client, pool = cast("ModelClient", SimpleNamespace(ask=ask_once)), cast("WorkerPool", None)
    formats = ReplyFormats(("json_schema",))
    judge_model = ModelJudge(JUDGE, client, "{task} {criterion} {files}", None, formats)

    with pytest.raises(ReviewError, match="was stopped") as stopped:
        task = a_task(config=TaskConfig(review=("It is short.", "It is fast.")))
        run_async(CodeReviewer(judge_model, pool).review(task, task.answer))

    assert stopped.value.usage.cost_usd == 0.25


def _no_bwrap(*_: object, **__: object) -> None:
    from eval_pipeline.suites.coding.sandbox import opening  # noqa: PLC0415

    opening.open_sandbox("none")
