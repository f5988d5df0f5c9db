"""A changed benchmark or more samples: what would be asked in the same way is not asked again."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.benchmark import keep, load_benchmark
from eval_pipeline.carrying import carry_over
from eval_pipeline.history import Pending, ReplyKey
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS
from eval_pipeline.providers.demo.faults import Faults
from eval_pipeline.records import ItemKey, Prediction, Prices, Run
from eval_pipeline.runs import Mode
from eval_pipeline.settings import PACKAGE
from eval_pipeline.stages.predict import Launch
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
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


def everything(run: Run) -> Pending:
    return Pending(run.plan, range(run.planned))


def hash_of(reply: ReplyKey) -> str:
    """As `a_prediction` has it."""
    return a_prediction(reply.key.item_id).request_hash


def ask(stand: Stand, run_id: str, samples: int, mode: Mode = Mode.AUTO) -> list[str]:
    """Asks each item so often; says which replies were asked for in this run."""
    settings = stand.settings.overridden({"plan": {"samples": samples}})
    (tally,) = stand.predict(STRONG, launch=Launch(run_id, mode), settings=settings)
    here = [one for one in replies(stand, run_id) if one.carried_from is None]
    assert tally.asked == tally.planned
    return [f"{one.item_id}/{one.sample}" for one in here]


def replies(stand: Stand, run_id: str) -> list[Prediction]:
    found = stand.journal.read(PREDICTIONS, "demo/strong", run_id)
    return sorted(found, key=lambda one: (one.sample, one.item_id))


def judge_all(stand: Stand, run_id: str) -> None:
    """A verdict on every reply, without asking anybody."""
    verdicts = map(a_judgement, replies(stand, run_id))
    stand.journal.write_whole(JUDGED, "demo/strong", run_id, "by-hand", records=verdicts)


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
    new = a_run("new", plan=benchmark.items, benchmark_version=version, carry_from="run-1")

    left = carry_over(journal, new, everything(new), hash_of)

    (prediction,) = journal.read(PREDICTIONS, "demo/strong", "new")
    (judgement,) = journal.read(JUDGED, "demo/strong", "new")
    assert [key.item_id for key, _ in left] == ["q2", "q3", "q4"]
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
    new = a_run("new", carry_from=carry_from)

    left = carry_over(journal, new, everything(new), hash_of)

    assert list(left) == [(ItemKey("sample", "q1"), 0)]
    assert journal.snapshot() == before


def test_more_samples_ask_only_those_that_are_new(stand: Stand) -> None:
    evaluate(stand, "one")
    before = replies(stand, "one")

    asked = ask(stand, "three", 3)

    assert asked == ["q1/1", "q2/1", "q3/1", "q1/2", "q2/2", "q3/2"]
    assert sorted(stand.gateway.seen.values())[-3:] == [3, 3, 3]
    carried = [one for one in replies(stand, "three") if one.carried_from == "one"]
    assert [(one.item_id, one.sample, one.answer) for one in carried] == [
        (one.item_id, 0, one.answer) for one in before
    ]
    verdicts = list(stand.journal.read(JUDGED, "demo/strong", "three"))
    assert {one.prediction_id for one in verdicts} == {one.prediction_id for one in carried}
    assert replies(stand, "one") == before
    (tally,) = stand.judge("demo/strong")
    assert tally.asked == 6


def test_samples_that_were_taken_over_are_not_asked_again_in_the_next_launch(stand: Stand) -> None:
    ask(stand, "one", 1)
    ask(stand, "three", 3)

    again = ask(stand, "next", 3)

    assert again == []
    assert len(replies(stand, "three")) == 9
    assert set(stand.gateway.seen.values()) == {3}


def test_a_repetition_with_as_many_samples_is_asked_anew(stand: Stand) -> None:
    ask(stand, "one", 1)
    ask(stand, "two", 2)
    judge_all(stand, "two")

    again = ask(stand, "again", 2)

    assert len(again) == 6


def test_a_fresh_run_with_more_samples_asks_everything(stand: Stand) -> None:
    ask(stand, "one", 1)

    assert len(ask(stand, "new", 2, Mode.FRESH)) == 6


def test_a_changed_benchmark_keeps_the_samples_of_what_did_not_change(stand: Stand) -> None:
    ask(stand, "old", 2)
    judge_all(stand, "old")
    change_questions(stand, lambda rows: rows[1].update(question="What is 6 minus 7?"))

    asked = ask(stand, "new", 2)

    assert asked == ["q2/0", "q2/1"]
    verdicts = stand.journal.read(JUDGED, "demo/strong", "new")
    carried = [one for one in replies(stand, "new") if one.carried_from]
    assert [(one.item_id, one.sample) for one in carried] == [
        ("q1", 0),
        ("q3", 0),
        ("q1", 1),
        ("q3", 1),
    ]
    assert {(one.prediction_id, one.sample) for one in verdicts} == {
        (one.prediction_id, one.sample) for one in carried
    }


def test_fewer_samples_of_a_changed_benchmark_take_over_the_first_ones(stand: Stand) -> None:
    ask(stand, "old", 3)
    change_questions(stand, lambda rows: rows[1].update(category="Other"))

    asked = ask(stand, "new", 1)

    assert asked == []
    assert [one.sample for one in replies(stand, "new")] == [0, 0, 0]


def test_what_the_last_run_lacks_may_be_in_the_run_which_that_one_took_over(stand: Stand) -> None:
    ask(stand, "old", 3)
    change_questions(stand, lambda rows: rows[1].update(question="What is 6 minus 7?"))
    ask(stand, "one", 1)

    asked = ask(stand, "three", 3)

    assert asked == ["q2/1", "q2/2"]
    origins = {(one.item_id, one.sample): one.carried_from for one in replies(stand, "three")}
    assert origins["q1", 0] == origins["q1", 2] == "old"
    assert origins["q2", 0] == "one"


def test_an_interrupted_run_leaves_what_it_has_to_one_with_more_samples(stand: Stand) -> None:
    dear = a_model(prices=Prices(prompt=0, completion=0, request=1))
    tight = {"budget": {"usd_per_run": 2}, "concurrency": {"num_workers": 1}}
    stand.predict(dear, launch=Launch("part"), settings=stand.settings.overridden(tight))

    asked = ask(stand, "two", 2)

    assert asked == ["q3/0", "q1/1", "q2/1", "q3/1"]


def test_runs_that_lead_in_a_circle_are_left_after_one_round(tmp_path: Path) -> None:
    version = a_benchmark().version.benchmark_version
    one = a_run("one", benchmark_version=version, carry_from="two")
    two = a_run("two", benchmark_version=version, carry_from="one")
    journal = a_journal(tmp_path, one, two)

    left = carry_over(journal, one, everything(one), hash_of)

    assert len(left) == 1


def test_a_reply_with_another_seed_is_another_request(stand: Stand) -> None:
    seeded = {"experiments": {"default": {"extra": {"seed": 1}}}}
    stand.settings = stand.settings.overridden(seeded)
    ask(stand, "one", 1)

    asked = ask(stand, "three", 3)

    assert asked == ["q1/1", "q2/1", "q3/1", "q1/2", "q2/2", "q3/2"]
    (run,) = (run for run in stand.journal.read(RUNS, "demo/strong") if run.run_id == "three")
    assert (run.samples, run.carry_from) == (3, "one")
    hashes = {one.request_hash for one in replies(stand, "three")}
    assert len(hashes) == 9
