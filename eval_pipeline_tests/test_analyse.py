"""The stage that explains failures: all of them, a few at a time, none twice, within the budget."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.analysis.analyse import analyse
from eval_pipeline.analysis.evidence import read_evidence
from eval_pipeline.analysis.failures import Failure, to_analyse
from eval_pipeline.evaluation.workers import StageProgress
from eval_pipeline.gateways.demo.coder import as_reply
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import DIAGNOSES
from eval_pipeline.records.diagnosis import Diagnosis
from eval_pipeline.records.item import Item, ItemKey
from eval_pipeline.records.model import Model, Prices
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.results.runs import find_runs
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.runtime import run_async
from eval_pipeline.suites.benchmark import Benchmark, keep
from eval_pipeline_tests.boards import Records
from eval_pipeline_tests.builders import (
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
    a_task,
    graded_code,
)
from eval_pipeline_tests.stand import JUDGE, Stand
from eval_pipeline_tests.test_interrupting import KeepsWaiting, interrupted, wait_for

TASK = a_task(gaps="That the tests of an empty list failed is a fault of ours.")
ITEMS: list[Item] = [*(a_question(f"q{number}") for number in range(5)), TASK]
EXAM = a_benchmark(*ITEMS)
MODELS = ("demo/strong", "demo/weak")
WRONG = 10
"""Of each model: four questions in both samples, and the task in both."""
DOLLAR = JUDGE.model_copy(update={"prices": Prices(prompt=0, completion=0, request=1)})


def a_failed_run(model: str) -> Records:
    """Two samples of each item, all of them wrong but those to q0."""
    version = EXAM.version.benchmark_version
    records: Records = [
        a_run("run-1", model, list(EXAM.items), benchmark_version=version, samples=2)
    ]
    for key, item in EXAM.items.items():
        code = {"code": graded_code(), "graded_by": "steps"} if item is TASK else {}
        answer = as_reply({"answer.py": "wrong = True\n"}) if code else "Answer: 41"
        for sample in range(2):
            prediction = a_prediction(
                key.item_id,
                prediction_id=f"{model} {key.item_id} {sample}",
                model=model,
                suite=key.suite,
                sample=sample,
                answer=answer,
            )
            score = float(key.item_id == "q0")
            records += [prediction, a_judgement(prediction, score, **code)]
    return records


class Bench(Stand):
    """A stand on which an analyst looks into what failed."""

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.settings.database, self.journal)

    def failures(self) -> list[Failure]:
        with self.warehouse.reading() as db:
            return to_analyse(db, find_runs(db, "run-1"))

    def analyse(
        self,
        *,
        by: Model = JUDGE,
        launch: str = "analysis",
        fresh: bool = False,
        board: list[StageProgress] | None = None,
        **changes: Any,
    ) -> list[StageProgress]:
        return run_async(
            analyse(
                self.failures(),
                launch,
                settings=self.settings.overridden(changes),
                journal=self.journal,
                analyst=by,
                fresh=fresh,
                board=board,
            )
        )

    def diagnoses(self) -> list[Diagnosis]:
        return list(self.journal.read(DIAGNOSES))

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        self.warehouse.publish()
        with self.warehouse.reading() as db:
            return db.sql(sql).fetchall()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data of two models that were wrong in most, published."""
    data = tmp_path_factory.mktemp("prepared") / "data"
    journal = a_journal(data, *both_runs(), benchmark=EXAM)
    Warehouse(data / "evals.duckdb", journal).publish()
    return data


def both_runs() -> Records:
    return [record for model in MODELS for record in a_failed_run(model)]


@pytest.fixture
def bench(tmp_path: Path, prepared: Path) -> Iterator[Bench]:
    shutil.copytree(prepared, tmp_path / "data")
    with DemoGateway(ITEMS) as gateway:
        yield Bench(tmp_path, gateway)


def asked(tallies: list[StageProgress]) -> list[int]:
    return [tally.asked for tally in tallies]


def test_every_wrong_reply_is_explained_four_at_a_time_over_all_models(bench: Bench) -> None:
    bench.gateway.misbehave(Faults(latency_s=0.03))

    tallies = bench.analyse()

    assert [(one.model, one.verb, one.planned) for one in tallies] == [
        (model, "analysed", WRONG) for model in MODELS
    ]
    assert [one.outcomes for one in tallies] == 2 * [{Outcome.OK: WRONG}]
    assert bench.gateway.most_at_once["demo/judge"] == 4
    replies = Counter((one.model, one.item_id, one.sample) for one in bench.diagnoses())
    assert len(replies) == 2 * WRONG == replies.total()
    assert {one.launch for one in bench.diagnoses()} == {"analysis"}
    told = bench.rows(
        "select item_id like '0%', classification, failed_step, gap, count(*) "
        "from failure_analysis where classification <> 'AMBIGUOUS_TASK' group by all order by 1"
    )
    assert told[0][:4] == (False, "MODEL_FAULT", None, None)
    assert told[1:] == [(True, "KNOWN_GAP", "tests", TASK.gaps, 4)]


def test_a_second_time_nobody_is_asked_unless_it_is_to_be_done_anew(bench: Bench) -> None:
    bench.analyse()

    same = bench.analyse(launch="later")
    longer = bench.analyse(launch="longer", analysis={"max_tokens": 9_999})
    fresh = bench.analyse(launch="fresh", fresh=True)
    gone_on = bench.analyse(launch="fresh", fresh=True)

    assert [asked(one) for one in (same, longer, fresh, gone_on)] == [
        [0, 0],
        [WRONG, WRONG],
        [WRONG, WRONG],
        [0, 0],
    ]
    assert bench.gateway.requests["demo/judge"] == 6 * WRONG
    assert bench.rows("select count(*) from diagnoses") == [(2 * WRONG,)]


def test_where_known_faults_of_a_task_have_changed_only_that_task_is_looked_into_again(
    bench: Bench,
) -> None:
    bench.analyse()
    other = TASK.model_copy(update={"gaps": f"- Nobody says what a word is.\n- {TASK.gaps}"})

    keep(Benchmark(EXAM.version, {**EXAM.items, ItemKey("coding", TASK.id): other}), bench.journal)
    more = bench.analyse(launch="more")
    same = bench.analyse(launch="same")
    keep(EXAM, bench.journal)
    fewer = bench.analyse(launch="fewer")

    assert [asked(one) for one in (more, same, fewer)] == [[2, 2], [0, 0], [2, 2]]
    again = [one for one in bench.diagnoses() if one.launch != "analysis"]
    assert {one.item_id for one in again} == {TASK.id}


def test_what_the_analyst_could_not_be_asked_is_never_classified_and_asked_again(
    bench: Bench,
) -> None:
    bench.gateway.misbehave(Faults(server_error=0.5, seed=2))

    during = bench.analyse(requests={"attempts": 1})

    failed = sum(one.outcomes[Outcome.SERVER_ERROR] for one in during)
    assert 0 < failed < 2 * WRONG
    unexplained = [one for one in bench.diagnoses() if one.explanation is None]
    assert len(unexplained) == failed and all("HTTP 5" in one.reason for one in unexplained)
    assert bench.rows("select count(classification) from failure_analysis") == [
        (2 * WRONG - failed,)
    ]
    bench.gateway.misbehave(Faults())
    assert sum(asked(bench.analyse())) == failed
    assert bench.rows("select count(*) from failure_analysis where classification is null") == [
        (0,)
    ]


def test_an_analyst_that_takes_no_schema_is_asked_in_words(bench: Bench) -> None:
    bench.gateway.misbehave(Faults(refuses=("json_schema", "tool")))

    tallies = bench.analyse(analysis={"num_workers": 1})

    assert [one.outcomes for one in tallies] == 2 * [{Outcome.OK: WRONG}]
    assert {one.reply_format for one in bench.diagnoses()} == {"text"}
    assert bench.gateway.requests["demo/judge"] <= 2 * WRONG + 4


def test_analysing_stops_at_the_budget_and_goes_on_with_more(bench: Bench) -> None:
    limited: dict[str, Any] = {
        "budget": {"usd_per_model": 3},
        "analysis": {"num_workers": 1},
    }

    first, later = bench.analyse(by=DOLLAR, **limited), bench.analyse(by=DOLLAR, **limited)
    enough = bench.analyse(by=DOLLAR)

    assert [(one.asked, one.budget_reached, one.failed) for one in first] == 2 * [(3, True, False)]
    assert [one.estimated_usd for one in first] == 2 * [pytest.approx(WRONG)]
    assert [(one.asked, one.budget_reached) for one in later] == 2 * [(0, True)]
    assert asked(enough) == 2 * [WRONG - 3]
    assert bench.rows("select sum(cost_usd) from diagnoses") == [(2.0 * WRONG,)]


def test_an_analyst_that_is_refused_stops_at_once(bench: Bench) -> None:
    bench.gateway.misbehave(Faults(status={"demo/judge": 401}))

    tallies = bench.analyse(analysis={"num_workers": 1})

    assert [(one.asked, one.failed) for one in tallies] == 2 * [(1, True)]
    assert {one.outcome for one in bench.diagnoses()} == {Outcome.AUTH}


def test_nothing_is_asked_where_nothing_failed(bench: Bench) -> None:
    how: dict[str, Any] = {"settings": bench.settings, "journal": bench.journal}

    assert run_async(analyse([], "none", **how, analyst=JUDGE)) == []


def test_two_launches_at_once_do_not_pay_twice(bench: Bench) -> None:
    failures = bench.failures()

    async def both() -> tuple[list[StageProgress], list[StageProgress]]:
        how: dict[str, Any] = {"settings": bench.settings, "journal": bench.journal}
        return await asyncio.gather(
            analyse(failures, "a", **how, analyst=JUDGE),
            analyse([*failures, *failures], "b", **how, analyst=JUDGE),
        )

    one, other = run_async(both())

    assert sum(asked([*one, *other])) == 2 * WRONG == bench.gateway.requests["demo/judge"]


def test_interrupted_it_keeps_what_is_under_way_and_later_asks_only_the_rest(
    tmp_path: Path, prepared: Path
) -> None:
    shutil.copytree(prepared, tmp_path / "data")
    with KeepsWaiting(ITEMS, "demo/judge") as gateway:
        bench, board = Bench(tmp_path, gateway), list[StageProgress]()

        def answer_once_stopped() -> None:
            wait_for(lambda: all(tally.stopped for tally in board))
            gateway.go_on.set()

        with interrupted(lambda: gateway.has_all_waiting, answer_once_stopped):
            bench.analyse(board=board)
        kept = len(bench.diagnoses())
        rest = bench.analyse()

    assert kept == gateway.before + 4
    assert sum(asked(rest)) == 2 * WRONG - kept
    assert gateway.requests["demo/judge"] == 2 * WRONG


def test_evidence_that_can_not_be_read_once_is_read_again_for_the_rest(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [OSError("The disk is away.")]

    def read(*about: Any) -> Any:
        if broken:
            raise broken.pop()
        return read_evidence(*about)

    monkeypatch.setattr("eval_pipeline.analysis.analyse.read_evidence", read)

    tallies = bench.analyse()

    assert asked(tallies) == [WRONG, WRONG]
    lost = sum(one.outcomes[Outcome.INTERNAL_ERROR] for one in tallies)
    assert 0 < lost <= bench.settings.analysis.num_workers


def test_a_reply_that_is_gone_meanwhile_is_passed_over(bench: Bench) -> None:
    failures = bench.failures()
    gone = [one._replace(prediction_id="gone") for one in failures[:1]]
    how: dict[str, Any] = {"settings": bench.settings, "journal": bench.journal}

    tallies = run_async(analyse([*gone, *failures[1:]], "a", **how, analyst=JUDGE))

    assert [(one.asked, one.planned) for one in tallies] == [(WRONG - 1, WRONG - 1), (WRONG, WRONG)]
