"""A changed benchmark: what would be asked in exactly the same way is not asked again."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.benchmark import keep, load_benchmark
from eval_pipeline.carrying import carry_over
from eval_pipeline.journal import JUDGED, PREDICTIONS
from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.records import ItemKey
from eval_pipeline.runs import Mode
from eval_pipeline.settings import PACKAGE
from eval_pipeline.stages.predict import Launch
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
    a_run,
)
from eval_pipeline_tests.stand import STRONG, Stand

Rows = list[dict[str, str]]


def change_questions(stand: Stand, change: Callable[[Rows], object]) -> None:
    path = stand.settings.root / "questions.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    change(rows)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    keep(load_benchmark(stand.settings), stand.journal)


def evaluate(stand: Stand, run_id: str, mode: Mode = Mode.AUTO) -> tuple[list[str], int]:
    """Which items were asked in this run, and how many verdicts were asked for."""
    before = stand.gateway.requests["demo/judge"]
    stand.predict(STRONG, launch=Launch(run_id, mode))
    stand.judge("demo/strong")
    here = stand.journal.read(PREDICTIONS, "demo/strong", run_id)
    asked = sorted(one.item_id for one in here if one.carried_from is None)
    return asked, stand.gateway.requests["demo/judge"] - before


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        (
            lambda rows: rows.append({**rows[0], "id": "q4", "question": "What is 6 plus 7?"}),
            ["q4"],
        ),
        (lambda rows: rows[1].update(question="What is 6 minus 7?"), ["q2"]),
        (lambda rows: rows.pop(), []),
        (lambda rows: rows[1].update(category="Other"), []),
    ],
    ids=["added", "edited", "removed", "moved to another category"],
)
def test_only_what_changed_in_the_questions_is_asked_and_judged(
    stand: Stand, change: Callable[[Rows], object], asked: list[str]
) -> None:
    evaluate(stand, "old")
    change_questions(stand, change)

    again = evaluate(stand, "new")

    assert again == (asked, len(asked))
    assert stand.predict(STRONG, launch=Launch("next"))[0].asked == len(
        list(stand.journal.read(PREDICTIONS, "demo/strong", "new"))
    )


def test_another_judge_prompt_judges_everything_and_asks_nothing(stand: Stand) -> None:
    evaluate(stand, "old")
    prompt = stand.settings.root / "judge.txt"
    prompt.write_text((PACKAGE / "prompts" / "judge.txt").read_text() + "\nBe strict.")
    stand.settings = stand.settings.overridden({"judge": {"prompt": Path("judge.txt")}})
    keep(load_benchmark(stand.settings), stand.journal)

    asked, judged = evaluate(stand, "new")

    assert (asked, judged) == ([], 3)


def test_another_reference_answer_is_judged_again_and_not_asked(stand: Stand) -> None:
    evaluate(stand, "old")
    change_questions(stand, lambda rows: rows[1].update(answer="43"))

    assert evaluate(stand, "new") == ([], 1)


def test_a_fresh_run_asks_everything(stand: Stand) -> None:
    evaluate(stand, "old")
    change_questions(stand, lambda rows: rows[1].update(question="What is 6 minus 7?"))

    asked, _ = evaluate(stand, "new", Mode.FRESH)

    assert asked == ["q1", "q2", "q3"]


def test_taking_over_twice_is_taking_over_once(stand: Stand) -> None:
    evaluate(stand, "old")
    change_questions(stand, lambda rows: rows[1].update(question="What is 6 minus 7?"))
    stand.gateway.misbehave(Faults(server_error=1))
    stand.predict(STRONG, launch=Launch("new"))
    stand.gateway.misbehave(Faults())

    evaluate(stand, "again")

    kept = list(stand.journal.read(PREDICTIONS, "demo/strong", "new"))
    assert sorted(one.item_id for one in kept if one.outcome.is_result) == ["q1", "q2", "q3"]
    assert len(list(stand.journal.read(JUDGED, "demo/strong", "new"))) == 3


def test_the_last_word_on_an_item_is_what_is_taken_over(tmp_path: Path) -> None:
    benchmark = a_benchmark(*map(a_question, ["q1", "q2", "q3", "q4"]))
    version = benchmark.version.benchmark_version
    later = {"finished_at": NOON + timedelta(hours=1)}
    right = a_prediction("q1", **later, prediction_id="right")
    done = [
        right,
        a_prediction("q1", outcome="timeout"),
        a_prediction("q2"),
        a_prediction("q2", **later, outcome="timeout"),
        a_prediction("q3", request_hash="asked in another way"),
    ]
    verdicts = [a_judgement(one) for one in done]
    earlier = a_run(benchmark_version=version)
    journal = a_journal(tmp_path, earlier, *done, *verdicts, benchmark=benchmark)
    hashes = {ItemKey("sample", name): a_prediction(name).request_hash for name in ("q1", "q2")}

    carried = carry_over(
        journal,
        a_run("new", benchmark_version=version, carry_from="run-1"),
        {**hashes, ItemKey("sample", "q3"): "asked", ItemKey("sample", "q4"): "never asked"},
    )

    (prediction,) = journal.read(PREDICTIONS, "demo/strong", "new")
    (judgement,) = journal.read(JUDGED, "demo/strong", "new")
    assert carried == {ItemKey("sample", "q1")}
    assert prediction.model_copy(update={"prediction_id": "right"}) == right.model_copy(
        update={"run_id": "new", "carried_from": "run-1"}
    )
    assert judgement.prediction_id == prediction.prediction_id


@pytest.mark.parametrize("carry_from", [None, "gone"])
def test_without_an_earlier_run_nothing_is_taken_over(
    tmp_path: Path, carry_from: str | None
) -> None:
    journal = a_journal(tmp_path, a_run(), a_prediction())
    before = journal.snapshot()

    carried = carry_over(
        journal,
        a_run("new", carry_from=carry_from),
        {ItemKey("sample", "q1"): a_prediction().request_hash},
    )

    assert carried == frozenset()
    assert journal.snapshot() == before
