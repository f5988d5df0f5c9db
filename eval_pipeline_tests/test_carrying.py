"""A changed benchmark or more samples: what would be asked in the same way is not asked again."""

import json
import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.reuse import reuse_answers
from eval_pipeline.evaluation.runs import open_run
from eval_pipeline.evaluation.state import Pending, ReplyKey, find_pending
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.journal import (
    DIAGNOSES,
    JUDGED,
    PREDICTIONS,
    RECLASSIFIED,
    RUNS,
    Journal,
    Stream,
)
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.model import Prices
from eval_pipeline.records.prediction import Prediction
from eval_pipeline.records.run import Mode, Run
from eval_pipeline.settings.sections import PACKAGE
from eval_pipeline.suites.benchmark import Benchmark, keep, load_benchmark
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_diagnosis,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_reclassification,
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


def evaluate(
    stand: Stand, run_id: str, mode: Mode = Mode.AUTO, *, only: str = ""
) -> tuple[list[str], int]:
    """Which items were asked in this run, and how many verdicts were asked for."""
    before = stand.gateway.requests["demo/judge"]
    settings = stand.settings.overridden({"plan": {"test_filter": only}})
    stand.predict(STRONG, launch=Launch(run_id, mode), settings=settings)
    stand.judge("demo/strong")
    here = stand.journal.read(PREDICTIONS, "demo/strong", run_id)
    asked = sorted(one.item_id for one in here if one.carried_from is None)
    return asked, stand.gateway.requests["demo/judge"] - before


def everything(run: Run) -> Pending:
    return Pending(run.plan, range(run.planned))


def hash_of(reply: ReplyKey) -> str:
    """As `a_prediction` has it."""
    return a_prediction(reply.key.item_id).request_hash


def ask(
    stand: Stand, run_id: str, samples: int, mode: Mode = Mode.AUTO, *, only: str = ""
) -> list[str]:
    """Asks each item so often; says which replies were asked for in this run."""
    settings = stand.settings.overridden({"plan": {"samples": samples, "test_filter": only}})
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
    new = a_run("new", plan=benchmark.items, benchmark_version=version, carry_from=("run-1",))

    left = reuse_answers(journal, new, everything(new), hash_of)

    (prediction,) = journal.read(PREDICTIONS, "demo/strong", "new")
    (judgement,) = journal.read(JUDGED, "demo/strong", "new")
    assert [key.item_id for key, _ in left] == ["q2", "q3", "q4"]
    assert prediction.model_copy(update={"prediction_id": "right"}) == right.model_copy(
        update={"run_id": "new", "carried_from": "run-1"}
    )
    assert judgement.prediction_id == prediction.prediction_id


@pytest.mark.parametrize("carry_from", [(), ("gone",), ("gone", "new")])
def test_without_an_earlier_run_nothing_is_taken_over(
    tmp_path: Path, carry_from: tuple[str, ...]
) -> None:
    journal = a_journal(tmp_path, a_run(), a_prediction())
    before = journal.snapshot()
    new = a_run("new", carry_from=carry_from)

    left = reuse_answers(journal, new, everything(new), hash_of)

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


def a_chain(folder: Path, **carry_from: str) -> tuple[Journal, Run]:
    """Runs that carry over one run each; `one` has an answer to q1."""
    version = a_benchmark().version.benchmark_version
    runs = [
        a_run(run_id, benchmark_version=version, carry_from=(other,) if other else ())
        for run_id, other in carry_from.items()
    ]
    journal = a_journal(folder, *runs, a_prediction(run_id="one"))
    return journal, a_run("new", benchmark_version=version, carry_from=("three",))


def test_a_run_leads_on_to_the_one_which_it_took_over(tmp_path: Path) -> None:
    journal, new = a_chain(tmp_path, one="", two="one", three="two")

    left = reuse_answers(journal, new, everything(new), hash_of)

    (taken,) = journal.read(PREDICTIONS, "demo/strong", "new")
    assert (len(left), taken.carried_from) == (0, "one")


@pytest.mark.parametrize("end", ["new", "three", "two"])
def test_runs_that_lead_in_a_circle_are_left_after_one_round(tmp_path: Path, end: str) -> None:
    journal, new = a_chain(tmp_path, two=end, three="two")

    left = reuse_answers(journal, new, everything(new), hash_of)

    assert len(left) == 1


def edit(stand: Stand, **changes: str) -> None:
    """Another benchmark version, in which q2 has changed."""
    change_questions(stand, lambda rows: rows[1].update(changes))


def interrupt(stand: Stand, run_id: str, answered: int, samples: int = 1) -> None:
    """A fresh run that ends after so many answers, which are judged."""
    dear = a_model(prices=Prices(prompt=0, completion=0, request=1))
    tight = {"budget": {"usd_per_run": answered or 1}, "concurrency": {"num_workers": 1}}
    settings = stand.settings.overridden({**tight, "plan": {"samples": samples}})
    stand.gateway.misbehave(Faults() if answered else Faults(server_error=1))
    stand.predict(dear, launch=Launch(run_id, Mode.FRESH), settings=settings)
    stand.gateway.misbehave(Faults())
    stand.judge("demo/strong")
    assert sum(one.outcome.is_result for one in replies(stand, run_id)) == answered


def origins(stand: Stand, run_id: str) -> dict[str, str | None]:
    return {one.item_id: one.carried_from for one in replies(stand, run_id)}


def test_a_filtered_run_of_the_new_version_does_not_stand_before_the_old_one(stand: Stand) -> None:
    evaluate(stand, "old")
    edit(stand, question="What is 6 minus 7?")

    few = evaluate(stand, "few", only="q[12]$")
    new = evaluate(stand, "new")

    assert (few, new) == ((["q2"], 1), ([], 0))
    assert origins(stand, "new") == {"q1": "old", "q2": "few", "q3": "old"}
    assert len(list(stand.journal.read(JUDGED, "demo/strong", "new"))) == 3


def test_what_is_taken_over_again_is_still_said_to_be_that_of_the_run_which_paid(
    stand: Stand,
) -> None:
    for run_id, question in (("old", "6 + 7?"), ("new", "6 - 7?"), ("newest", "6 * 7?")):
        edit(stand, question=question)
        evaluate(stand, run_id)

    (run,) = (run for run in stand.journal.read(RUNS, "demo/strong") if run.run_id == "newest")
    verdicts = stand.journal.read(JUDGED, "demo/strong", "newest")
    expected = {"q1": "old", "q2": None, "q3": "old"}
    assert run.carry_from == ("new", "old")
    assert origins(stand, "newest") == expected
    assert {one.item_id: one.carried_from for one in verdicts} == expected


@pytest.mark.parametrize("mode", [Mode.AUTO, Mode.FRESH])
def test_a_filtered_run_of_the_old_version_does_not_stand_before_the_whole_one(
    stand: Stand, mode: Mode
) -> None:
    evaluate(stand, "old")
    few = evaluate(stand, "few", mode, only="q[12]$")
    edit(stand, question="What is 6 minus 7?")

    new = evaluate(stand, "new")

    assert few == (([], 0) if mode is Mode.AUTO else (["q1", "q2"], 2))
    assert new == (["q2"], 1)
    assert origins(stand, "new") == {"q1": "old", "q2": None, "q3": "old"}


@pytest.mark.parametrize("answered", [0, 1])
def test_an_interrupted_fresh_run_does_not_stand_before_the_whole_one(
    stand: Stand, answered: int
) -> None:
    evaluate(stand, "old")
    interrupt(stand, "cut", answered)
    edit(stand, question="What is 6 minus 7?")

    assert evaluate(stand, "new") == (["q2"], 1)
    assert origins(stand, "new") == {"q1": "old", "q2": None, "q3": "old"}


def test_a_whole_run_takes_over_what_a_filtered_one_of_its_version_has(stand: Stand) -> None:
    few = evaluate(stand, "few", only="q[12]$")

    whole = evaluate(stand, "whole")
    again = evaluate(stand, "again")

    assert (few, whole) == ((["q1", "q2"], 2), (["q3"], 1))
    assert again == (["q1", "q2", "q3"], 3)


def test_nothing_is_asked_twice_however_many_runs_have_a_part_of_it(stand: Stand) -> None:
    ask(stand, "old", 2)
    ask(stand, "few of old", 1, Mode.FRESH, only="q1$")
    interrupt(stand, "cut", 1, samples=3)
    edit(stand, question="What is 6 minus 7?")
    ask(stand, "few", 1, only="q[12]$")
    interrupt(stand, "cut again", 0, samples=4)

    asked = ask(stand, "new", 3)

    assert asked == ["q2/1", "q1/2", "q2/2", "q3/2"]
    found = {(one.item_id, one.sample): one.carried_from for one in replies(stand, "new")}
    assert (found["q1", 1], found["q3", 0], found["q2", 0]) == ("old", "old", "few")
    assert len(found) == len(replies(stand, "new")) == 9
    assert ask(stand, "next", 3) == []


def test_a_verdict_on_another_reference_is_found_in_whichever_run_has_it(stand: Stand) -> None:
    evaluate(stand, "old")
    edit(stand, answer="43")

    few = evaluate(stand, "few", only="q[12]$")
    new = evaluate(stand, "new")

    assert (few, new) == (([], 1), ([], 0))
    assert origins(stand, "new") == {"q1": "old", "q2": "old", "q3": "old"}
    verdicts = {one.item_id: one for one in stand.journal.read(JUDGED, "demo/strong", "new")}
    assert {name: one.carried_from for name, one in verdicts.items()} == {
        "q1": "old",
        "q2": "few",
        "q3": "old",
    }
    assert {one.prediction_id for one in verdicts.values()} == {
        one.prediction_id for one in replies(stand, "new")
    }


def two_runs(folder: Path, judged: str = "") -> tuple[Journal, Run]:
    """A run with q1 and q2, one with q2 and q3, verdicts on those named; and one to take over."""
    benchmark = a_benchmark(*map(a_question, ["q1", "q2", "q3", "q4"]))
    version = benchmark.version.benchmark_version
    done = [
        a_prediction(item_id, run_id=run_id)
        for run_id, item_id in (("a", "q1"), ("a", "q2"), ("b", "q2"), ("b", "q3"))
    ]
    verdicts = [a_judgement(one) for one in done if f"{one.run_id}/{one.item_id}" in judged.split()]
    runs = [a_run(run_id, plan=benchmark.items, benchmark_version=version) for run_id in "ab"]
    journal = a_journal(folder, *runs, *done, *verdicts, benchmark=benchmark)
    new = a_run("new", plan=benchmark.items, benchmark_version=version, carry_from=("a", "b"))
    return journal, new


@pytest.mark.parametrize(
    ("judged", "expected"),
    [
        ("", "q1/a q2/a q3/b"),
        ("a/q1 a/q2 b/q2 b/q3", "q1/a q2/a q3/b"),
        ("b/q2", "q1/a q2/b q3/b"),
        ("a/q2", "q1/a q2/a q3/b"),
    ],
)
def test_the_first_run_is_preferred_unless_only_the_other_has_a_verdict(
    tmp_path: Path, judged: str, expected: str
) -> None:
    journal, new = two_runs(tmp_path, judged)

    left = reuse_answers(journal, new, everything(new), hash_of)

    found = {one.item_id: one for one in journal.read(PREDICTIONS, new.model, "new")}
    assert [f"{name}/{one.carried_from}" for name, one in sorted(found.items())] == expected.split()
    verdicts = list(journal.read(JUDGED, new.model, "new"))
    assert {one.prediction_id for one in verdicts} <= {one.prediction_id for one in found.values()}
    assert len(verdicts) == len({name.partition("/")[2] for name in judged.split()})
    assert [key.item_id for key, _ in left] == ["q4"]


@pytest.mark.parametrize("judged", ["", "a/q1 a/q2 b/q3", "a/q1 b/q2"])
def test_a_crash_before_any_file_changes_nothing_of_what_is_taken_over(
    tmp_path: Path, judged: str
) -> None:
    journal, new = two_runs(tmp_path, judged)
    reuse_answers(journal, new, everything(new), hash_of)
    whole = contents(journal)
    written = written_in(journal, new)
    assert len(written) >= 4

    for count in range(len(written)):
        for path in written[count:]:
            path.unlink()
        reuse_answers(journal, new, find_pending(journal, new), hash_of)
        assert contents(journal) == whole


def test_verdicts_that_came_between_a_crash_and_the_next_launch_are_there_once(
    tmp_path: Path,
) -> None:
    journal, new = two_runs(tmp_path, "a/q1 b/q3")
    reuse_answers(journal, new, everything(new), hash_of)
    _, *others = written_in(journal, new)
    for path in others:
        path.unlink()
    later = a_judgement(a_prediction("q2", run_id="a"))
    journal.write_whole(JUDGED, new.model, "a", "later", records=[later])

    reuse_answers(journal, new, find_pending(journal, new), hash_of)

    verdicts = [one.item_id for one in journal.read(JUDGED, new.model, "new")]
    assert sorted(verdicts) == ["q1", "q2", "q3"]


def written_in(journal: Journal, run: Run) -> list[Path]:
    """The run's files in the order in which they were written."""
    streams: list[Stream[Any]] = [PREDICTIONS, JUDGED]
    files = [path for stream in streams for path in journal.files(stream, run.model, run.run_id)]
    return sorted(files, key=lambda path: path.stat().st_mtime_ns)


def contents(journal: Journal) -> dict[Path, bytes]:
    files = journal.files(PREDICTIONS) + journal.files(JUDGED)
    return {path: path.read_bytes() for path in files}


def test_taking_over_from_several_runs_takes_a_few_bytes_per_reply(tmp_path: Path) -> None:
    benchmark = a_benchmark(*(a_question(f"q{number}") for number in range(500)))
    version = benchmark.version.benchmark_version
    whole = a_run(plan=benchmark.items, benchmark_version=version)
    runs = [whole.model_copy(update={"run_id": run_id}) for run_id in "abcd"]
    journal = a_journal(tmp_path, *runs, benchmark=benchmark)
    for run_id in "abcd":
        done = (
            a_prediction(key.item_id, run_id=run_id, answer="long " * 1000)
            for key in benchmark.items
            if int(key.item_id[1:]) % 4 != ord(run_id) % 4
        )
        journal.write_whole(PREDICTIONS, "demo/strong", run_id, "0", records=done)
    changes = {"run_id": "new", "samples": 8, "carry_from": tuple("abcd")}
    new = whole.model_copy(update=changes)
    tracemalloc.start()

    left = reuse_answers(journal, new, everything(new), hash_of)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert len(left) == 7 * 500
    assert peak / new.planned < 200


class Step(NamedTuple):
    """The two questions and their references as they now are, and a launch over some of them."""

    questions: str
    references: str
    plan: str
    samples: int
    mode: Mode
    answers: int
    is_judged: bool

    def run(self, number: int, benchmark: Benchmark) -> Run:
        return a_run(
            f"run-{number}",
            plan=[("sample", name) for name in self.plan],
            benchmark_version=benchmark.version.benchmark_version,
            samples=self.samples,
            opened_at=NOON + timedelta(minutes=number),
        )

    def benchmark(self) -> Benchmark:
        told = zip("01", self.questions, self.references, strict=True)
        return a_benchmark(
            *(a_question(name, question=question, answer=answer) for name, question, answer in told)
        )

    def request_hash(self, reply: ReplyKey) -> str:
        return self.questions[int(reply.key.item_id)]

    def answer(self, journal: Journal, run: Run, left: Pending) -> None:
        """Some of what is left; if it is judged, each verdict tells the reference as its reason."""
        here = replies_of(run, journal)
        answers = [self.prediction(run, reply) for reply in list(left)[: self.answers]]
        known = {one.prediction_id for one in journal.read(JUDGED, run.model, run.run_id)}
        verdicts = [
            a_judgement(one, reason=self.references[int(one.item_id)], launch=run.run_id)
            for one in [*here, *answers]
            if self.is_judged and one.prediction_id not in known
        ]
        name = f"{len(journal.snapshot())}"
        journal.write_whole(PREDICTIONS, run.model, run.run_id, name, records=answers)
        journal.write_whole(JUDGED, run.model, run.run_id, name, records=verdicts)

    def prediction(self, run: Run, reply: ReplyKey) -> Prediction:
        told = f"{run.run_id} {reply.key.item_id} {reply.sample}"
        asked = {"sample": reply.sample, "request_hash": self.request_hash(reply)}
        named = {"run_id": run.run_id, "prediction_id": told, "answer": told}
        return a_prediction(reply.key.item_id, **named, **asked)


steps = st.builds(
    Step,
    questions=st.sampled_from(["aa", "aa", "ab", "bb"]),
    references=st.sampled_from(["xx", "xx", "xy"]),
    plan=st.sampled_from(["01", "01", "0", "1"]),
    samples=st.sampled_from([1, 1, 2, 3]),
    mode=st.sampled_from([Mode.AUTO, Mode.AUTO, Mode.AUTO, Mode.FRESH]),
    answers=st.sampled_from([0, 1, 9, 9]),
    is_judged=st.booleans(),
)


def repeats(wanted: Run, journal: Journal) -> bool:
    """Whether a run of the same version and plan has every reply that is wanted."""
    for run in journal.read(RUNS, wanted.model):
        if (run.benchmark_version, run.plan) == (wanted.benchmark_version, wanted.plan):
            found = {(one.key, one.sample) for one in replies_of(run, journal)}
            if found.issuperset(everything(wanted)):
                return True
    return False


def replies_of(run: Run, journal: Journal) -> list[Prediction]:
    return list(journal.read(PREDICTIONS, run.model, run.run_id))


@hypothesis_settings(max_examples=15, deadline=None, database=None)
@given(launches=st.lists(steps, min_size=2, max_size=5))
def test_whatever_came_before_nothing_is_paid_for_twice(
    tmp_path_factory: pytest.TempPathFactory, launches: list[Step]
) -> None:
    folder = tmp_path_factory.mktemp("past")
    for number, step in enumerate(launches):
        journal = a_journal(folder, benchmark=step.benchmark())
        wanted = step.run(number, step.benchmark())
        anew = step.mode is Mode.FRESH or repeats(wanted, journal)
        asked = {one.prediction_id: one for one in journal.read(PREDICTIONS)}
        judged = {
            (one.item_id, one.sample, asked[one.prediction_id].request_hash, one.reason)
            for one in journal.read(JUDGED)
        }

        run, pending = (opened := open_run(journal, wanted, step.mode)).run, opened.pending
        left = reuse_answers(journal, run, pending, step.request_hash)

        taken = {(one.key, one.sample): one for one in replies_of(run, journal)}
        assert len(taken) + len(left) == run.planned == len(replies_of(run, journal)) + len(left)
        if run.run_id == wanted.run_id:
            known = {(one.key, one.sample, one.request_hash) for one in asked.values()}
            todo = [one for one in pending if anew or (*one, step.request_hash(one)) not in known]
            assert list(left) == todo
            verdicts = {
                one.prediction_id: one for one in journal.read(JUDGED, run.model, run.run_id)
            }
            for one in taken.values():
                reference = step.references[int(one.item_id)]
                paid = (one.item_id, one.sample, one.request_hash, reference) in judged
                verdict = verdicts.get(one.prediction_id)
                assert one.carried_from == str(one.answer).split()[0]
                assert (verdict and verdict.reason) == (reference if paid else None)
                assert verdict is None or verdict.carried_from == verdict.launch
        step.answer(journal, run, left)


def test_a_reply_with_another_seed_is_another_request(stand: Stand) -> None:
    seeded = {"experiments": {"default": {"extra": {"seed": 1}}}}
    stand.settings = stand.settings.overridden(seeded)
    ask(stand, "one", 1)

    asked = ask(stand, "three", 3)

    assert asked == ["q1/1", "q2/1", "q3/1", "q1/2", "q2/2", "q3/2"]
    (run,) = (run for run in stand.journal.read(RUNS, "demo/strong") if run.run_id == "three")
    assert (run.samples, run.carry_from) == (3, ("one",))
    hashes = {one.request_hash for one in replies(stand, "three")}
    assert len(hashes) == 9


def test_why_a_reply_was_wrong_is_taken_over_unless_other_faults_are_known_now(
    stand: Stand,
) -> None:
    evaluate(stand, "old")
    verdict, other, *_ = stand.journal.read(JUDGED, "demo/strong", "old")
    about = ("demo/strong", "old", "by-hand")
    # Of faults that are no longer on record.
    outdated = a_diagnosis(other).model_copy(update={"gaps_hash": "0123"})
    stand.journal.write_whole(DIAGNOSES, *about, records=[a_diagnosis(verdict), outdated])
    stand.journal.write_whole(RECLASSIFIED, *about, records=[a_reclassification(verdict)])
    change_questions(stand, lambda rows: rows.append({**rows[0], "id": "q4", "question": "6 + 7?"}))

    evaluate(stand, "new")

    (diagnosis,) = stand.journal.read(DIAGNOSES, "demo/strong", "new")
    (said,) = stand.journal.read(RECLASSIFIED, "demo/strong", "new")
    same = {one.item_id: one for one in replies(stand, "new")}[verdict.item_id]
    assert (diagnosis.prediction_id, diagnosis.carried_from) == (same.prediction_id, "old")
    assert diagnosis.explanation == a_diagnosis(verdict).explanation
    assert (said.run_id, said.item_id) == ("new", verdict.item_id)
