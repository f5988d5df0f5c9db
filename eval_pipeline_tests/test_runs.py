"""Which items a run covers, which run goes on, and what is left to ask in it."""

import json
import tracemalloc
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.errors import RunError
from eval_pipeline.evaluation.requests import RequestBuilder
from eval_pipeline.evaluation.runs import OpenRun, choose, new_run, open_run
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records.item import ItemKey
from eval_pipeline.records.outcome import Outcome
from eval_pipeline.records.prediction import Prediction
from eval_pipeline.records.run import Mode, PlanFilter, Run, Scope
from eval_pipeline.settings.sections import Experiment, Plan
from eval_pipeline.suites.kinds import Prompts
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
)

PICTURE = "data:image/png;base64,AAAA"
PLAN = (ItemKey("sample", "q1"), ItemKey("sample", "q2"), ItemKey("sample", "q3"))


def a_journal(folder: Path, *runs: Run, predictions: Iterable[Prediction] = ()) -> Journal:
    journal = Journal(folder)
    for run in runs:
        journal.write_whole(RUNS, run.model, run.run_id, records=[run])
    for number, one in enumerate(predictions):
        journal.write_whole(PREDICTIONS, one.model, one.run_id, f"{number}", records=[one])
    return journal


def left(opened: OpenRun) -> tuple[ItemKey, ...]:
    """The items to be asked, in their order, once per sample."""
    return tuple(key for key, _ in opened.pending)


def a_reply(item_id: str, sample: int, **changes: object) -> Prediction:
    run_id = changes.setdefault("run_id", "old")
    named = f"{run_id} {item_id} {sample}"
    return a_prediction(item_id, sample=sample, prediction_id=named, **changes)


@pytest.mark.parametrize(
    ("chosen", "expected", "scope"),
    [
        (PlanFilter(), "q1 q2 q3 p1", Scope.FULL),
        (PlanFilter(text_only=True), "q1 q3 p1", Scope.TEXT),
        (PlanFilter(max_samples=1), "q1 p1", Scope.FILTERED),
        (PlanFilter(text_only=True, max_samples=2), "q1 q3 p1", Scope.TEXT),
        (PlanFilter(max_samples=500), "q1 q2 q3 p1", Scope.FULL),
        (PlanFilter(categories=("Physics",)), "q3", Scope.FILTERED),
        (PlanFilter(test_filter="^sample/Math/q[12]$"), "q1 q2", Scope.FILTERED),
        (PlanFilter(test_filter="/p"), "p1", Scope.FILTERED),
        (PlanFilter(test_filter="nowhere"), "", Scope.FILTERED),
    ],
)
def test_a_filter_chooses_items_in_the_order_of_the_data_set(
    chosen: PlanFilter, expected: str, scope: Scope
) -> None:
    items = a_benchmark(
        a_question("q1"),
        a_question("q2", image=PICTURE),
        a_question("q3", category="Physics"),
        a_question("p1", suite="private"),
    ).items

    plan, found = choose(items, a_model(input_modalities=("text", "image")), chosen)

    assert " ".join(key.item_id for key in plan) == expected
    assert found is scope


def test_a_model_that_sees_no_images_is_asked_text_only() -> None:
    items = a_benchmark(a_question("q1"), a_question("q2", image=PICTURE)).items

    plan, scope = choose(items, a_model(input_modalities=("text",)), PlanFilter())

    assert plan == (ItemKey("sample", "q1"),)
    assert scope is Scope.TEXT


def test_a_plan_has_the_very_keys_of_the_items() -> None:
    benchmark = a_benchmark(a_question("q1"), a_question("q2"))

    run = new_run(
        "new",
        RequestBuilder(a_model(), Experiment(), Prompts("")),
        benchmark,
        Plan(),
        experiment_name="default",
    )

    assert list(map(id, run.plan)) == list(map(id, benchmark.items))


@pytest.mark.parametrize(
    ("mode", "run_id", "expected"),
    [
        (Mode.AUTO, None, "old: q2 q3"),
        (Mode.RESUME, None, "old: q3"),
        (Mode.FIX, None, "old: q2 q3"),
        (Mode.FRESH, None, "new: q1 q2 q3"),
        (Mode.AUTO, "ol", "old: q2 q3"),
        (Mode.RESUME, "old", "old: q3"),
    ],
)
def test_the_mode_says_what_is_asked_again(
    tmp_path: Path, mode: Mode, run_id: str | None, expected: str
) -> None:
    done = [a_prediction("q1", run_id="old"), a_prediction("q2", run_id="old", outcome="timeout")]
    journal = a_journal(tmp_path, a_run("old", plan=PLAN), predictions=done)

    opened = open_run(journal, a_run("new", plan=PLAN), mode, run_id=run_id)

    asked = " ".join(key.item_id for key in left(opened))
    assert f"{opened.run.run_id}: {asked}" == expected


def test_a_judged_run_is_followed_by_a_new_one(tmp_path: Path) -> None:
    prediction = a_prediction(run_id="old")
    journal = a_journal(tmp_path, a_run("old"), predictions=[prediction])
    verdict = a_judgement(prediction)
    journal.write_whole(JUDGED, verdict.model, verdict.run_id, "0", records=[verdict])

    opened = open_run(journal, a_run("new"), Mode.AUTO)

    assert opened.run.run_id == "new"
    assert [run.run_id for run in journal.read(RUNS, "demo/strong")] == ["new", "old"]


@pytest.mark.parametrize("score", [None, "no verdict at all"])
def test_a_run_that_waits_for_its_judge_is_not_paid_for_again(
    tmp_path: Path, score: str | None
) -> None:
    prediction = a_prediction(run_id="old")
    journal = a_journal(tmp_path, a_run("old"), predictions=[prediction])
    if score is None:
        failed = a_judgement(prediction, score=None)
        journal.write_whole(JUDGED, failed.model, failed.run_id, "0", records=[failed])

    opened = open_run(journal, a_run("new"), Mode.AUTO)

    assert (opened.run.run_id, left(opened)) == ("old", ())


def test_a_dagster_run_that_is_tried_again_goes_on_with_its_own_run(tmp_path: Path) -> None:
    journal = a_journal(tmp_path, a_run("same"), predictions=[a_prediction(run_id="same")])

    opened = open_run(journal, a_run("same"), Mode.FRESH)

    assert left(opened) == ()


def test_a_retry_of_a_failed_dagster_run_goes_on_with_what_that_one_opened(tmp_path: Path) -> None:
    journal = a_journal(
        tmp_path, a_run("first", plan=PLAN), predictions=[a_prediction(run_id="first")]
    )

    opened = open_run(journal, a_run("second", plan=PLAN), Mode.FRESH, retry_of="first")

    assert (opened.run.run_id, left(opened)) == ("first", PLAN[1:])


def test_running_a_finished_dagster_run_once_more_is_a_new_run(tmp_path: Path) -> None:
    prediction = a_prediction(run_id="first")
    journal = a_journal(tmp_path, a_run("first"), predictions=[prediction])
    verdict = a_judgement(prediction)
    journal.write_whole(JUDGED, verdict.model, verdict.run_id, "0", records=[verdict])

    opened = open_run(journal, a_run("second"), Mode.FRESH, retry_of="first")

    assert opened.run.run_id == "second"


def test_the_first_characters_of_a_run_mean_the_newest_that_begins_so(tmp_path: Path) -> None:
    older = a_run("abc-1", opened_at=NOON)
    newer = a_run("abc-2", opened_at=NOON + timedelta(hours=1))
    journal = a_journal(tmp_path, older, newer)

    opened = open_run(journal, a_run("new"), Mode.AUTO, run_id="abc")

    assert opened.run.run_id == "abc-2"


def test_verdicts_of_two_judges_do_not_add_up_to_a_judged_run(tmp_path: Path) -> None:
    done = [a_prediction("q1", run_id="old"), a_prediction("q2", run_id="old")]
    journal = a_journal(tmp_path, a_run("old", plan=PLAN[:2]), predictions=done)
    for number, judge in enumerate(["judge/a", "judge/b"]):
        verdict = a_judgement(done[number], judge=judge)
        journal.write_whole(JUDGED, verdict.model, verdict.run_id, judge, records=[verdict])

    opened = open_run(journal, a_run("new", plan=PLAN[:2]), Mode.AUTO)

    assert opened.run.run_id == "old"


@pytest.mark.parametrize(
    ("changes", "carries"),
    [
        ({"experiment": "terse"}, ()),
        ({"benchmark_version": "other"}, ("old",)),
        ({"parameters": {"temperature": 1}}, ()),
        ({"plan": PLAN[:2]}, ("old",)),
        ({"plan": PLAN[:2], "benchmark_version": "other"}, ("old",)),
    ],
)
def test_a_run_that_measures_something_else_is_not_continued(
    tmp_path: Path, changes: dict[str, object], carries: tuple[str, ...]
) -> None:
    journal = a_journal(tmp_path, a_run("old", plan=PLAN))
    wanted = a_run("new", plan=PLAN).model_copy(update=changes)

    opened = open_run(journal, wanted, Mode.AUTO)

    assert opened.run == wanted.model_copy(update={"carry_from": carries})
    assert left(opened) == wanted.plan


@pytest.mark.parametrize(
    ("mode", "run_id", "reason"),
    [
        (Mode.AUTO, "beef", "demo/strong has no run beef; its latest runs: old"),
        (Mode.AUTO, "old", "Run old of demo/strong was begun under the experiment 'terse'"),
    ],
)
def test_what_can_not_be_continued_is_refused_with_the_reason(
    tmp_path: Path, mode: Mode, run_id: str | None, reason: str
) -> None:
    journal = a_journal(tmp_path, a_run("old", experiment="terse"))

    with pytest.raises(RunError, match=reason):
        open_run(journal, a_run("new"), mode, run_id=run_id)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_only_what_says_nothing_about_the_model_is_asked_again(
    tmp_path: Path, outcome: Outcome
) -> None:
    journal = a_journal(
        tmp_path, a_run(plan=PLAN), predictions=[a_prediction("q1", outcome=outcome)]
    )

    opened = open_run(journal, a_run("new", plan=PLAN), Mode.AUTO)

    cut = {"truncated", "truncated_thinking"}
    finished = outcome in {"ok", "refused", "content_filter", "undecided"} | cut
    assert (PLAN[0] in left(opened)) is not finished


@pytest.mark.parametrize(
    "item_id",
    ['"plan":[["sample","x"]],"plan_filter":{', '",', "\\", "é\u2028😀", "]]", "plan_filter"],
)
def test_a_run_goes_on_whatever_its_items_are_called(tmp_path: Path, item_id: str) -> None:
    plan = (ItemKey('"plan":[', item_id), ItemKey("sample", "q1"))
    journal = a_journal(tmp_path, a_run("old", plan=plan), a_run("other", plan=plan[1:]))
    wanted = a_run("new", plan=plan)

    opened = open_run(journal, wanted, Mode.AUTO)

    assert opened.run == a_run("old", plan=plan)
    assert opened.run.plan is wanted.plan
    assert left(opened) == plan


@pytest.mark.parametrize("compact", [True, False])
def test_a_run_goes_on_however_its_plan_was_written(tmp_path: Path, compact: bool) -> None:
    plan = (ItemKey("sample", "é"), ItemKey("sample", "q1"))
    journal = a_journal(tmp_path, a_run("old", plan=plan))
    (path,) = journal.files(RUNS)
    separators = (",", ":") if compact else (", ", ": ")
    path.write_text(json.dumps(json.loads(path.read_text()), separators=separators) + "\n")

    opened = open_run(journal, a_run("new", plan=plan), Mode.AUTO)

    assert opened.run == a_run("old", plan=plan)


def test_a_run_that_is_named_goes_on_with_its_own_plan(tmp_path: Path) -> None:
    done = [a_prediction("q2", run_id="old")]
    journal = a_journal(tmp_path, a_run("old", plan=PLAN), predictions=done)

    opened = open_run(journal, a_run("new", plan=PLAN[:1]), Mode.AUTO, run_id="old")

    assert opened.run == a_run("old", plan=PLAN)
    assert left(opened) == (PLAN[0], PLAN[2])
    assert opened.done == 1


def test_the_answers_of_a_run_are_not_held_to_know_what_is_left(tmp_path: Path) -> None:
    plan = [ItemKey("sample", f"q{number}") for number in range(400)]
    answer = "long " * 4000
    done = (a_prediction(key.item_id, answer=answer) for key in plan[:-1])
    journal = a_journal(tmp_path, a_run(plan=plan))
    journal.write_whole(PREDICTIONS, "demo/strong", "run-1", "0", records=done)
    tracemalloc.start()

    opened = open_run(journal, a_run("new", plan=plan), Mode.AUTO)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert list(left(opened)) == plan[-1:]
    assert peak < 400 * len(answer) / 8


def test_how_often_an_item_is_asked_is_no_part_of_the_filter() -> None:
    run = new_run(
        "new",
        RequestBuilder(a_model(), Experiment(), Prompts("")),
        a_benchmark(a_question("q1"), a_question("q2")),
        Plan(max_samples=1, samples=5),
        experiment_name="default",
    )

    assert (run.samples, len(run.plan), run.planned) == (5, 1, 5)
    assert run.plan_filter == PlanFilter(max_samples=1)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.AUTO, "old: q2/0 q3/0 q1/1 q2/1"),
        (Mode.FIX, "old: q2/0 q3/0 q1/1 q2/1"),
        (Mode.RESUME, "old: q3/0 q1/1 q2/1"),
        (Mode.FRESH, "new: q1/0 q2/0 q3/0 q1/1 q2/1 q3/1"),
    ],
)
def test_a_sample_of_every_item_is_asked_before_the_next_sample_of_any(
    tmp_path: Path, mode: Mode, expected: str
) -> None:
    done = [a_reply("q1", 0), a_reply("q2", 0, outcome="timeout"), a_reply("q3", 1)]
    beyond = a_reply("q2", 2)
    run = a_run("old", plan=PLAN, samples=2)
    journal = a_journal(tmp_path, run, predictions=[*done, beyond])

    opened = open_run(journal, a_run("new", plan=PLAN, samples=2), mode)

    asked = " ".join(f"{key.item_id}/{sample}" for key, sample in opened.pending)
    assert f"{opened.run.run_id}: {asked}" == expected
    assert opened.done == 6 - len(opened.pending)


@hypothesis_settings(max_examples=50, deadline=None, database=None)
@given(
    items=st.integers(1, 5),
    samples=st.integers(1, 4),
    done=st.sets(st.tuples(st.integers(0, 4), st.integers(0, 3))),
)
def test_what_is_done_and_what_is_left_are_the_whole_plan(
    tmp_path_factory: pytest.TempPathFactory,
    items: int,
    samples: int,
    done: set[tuple[int, int]],
) -> None:
    plan = [ItemKey("sample", f"q{number}") for number in range(items)]
    replies = [a_reply(f"q{number}", sample) for number, sample in sorted(done)]
    journal = a_journal(
        tmp_path_factory.mktemp("journal"), a_run("old", plan=plan, samples=samples)
    )
    journal.write_whole(PREDICTIONS, "demo/strong", "old", "0", records=replies)

    opened = open_run(journal, a_run("new", plan=plan, samples=samples), Mode.AUTO, run_id="old")

    whole = [(key, sample) for sample in range(samples) for key in plan]
    known = {(one.key, one.sample) for one in replies}
    assert list(opened.pending) == [pair for pair in whole if pair not in known]
    assert opened.done + len(opened.pending) == opened.run.planned == len(whole)


def test_a_run_is_judged_when_one_judge_has_scored_every_sample(tmp_path: Path) -> None:
    replies = [a_reply("q1", 0), a_reply("q1", 1)]
    journal = a_journal(tmp_path, a_run("old", samples=2), predictions=replies)
    opened = []
    for number, reply in enumerate(replies):
        verdict = a_judgement(reply)
        journal.write_whole(JUDGED, verdict.model, "old", f"{number}", records=[verdict])
        opened.append(open_run(journal, a_run("new", samples=2), Mode.AUTO))

    assert [one.run.run_id for one in opened] == ["old", "new"]


def test_a_run_from_before_there_were_samples_has_one(tmp_path: Path) -> None:
    journal = a_journal(tmp_path, a_run("old", plan=PLAN), predictions=[a_prediction(run_id="old")])
    for stream in (RUNS, PREDICTIONS):
        (path,) = journal.files(stream)
        record = json.loads(path.read_text())
        assert record.pop("samples" if stream is RUNS else "sample") in {0, 1}
        path.write_text(json.dumps(record) + "\n")

    opened = open_run(journal, a_run("new", plan=PLAN), Mode.AUTO)

    assert (opened.run.run_id, opened.run.samples) == ("old", 1)
    assert list(opened.pending) == [(PLAN[1], 0), (PLAN[2], 0)]


def earlier(run_id: str, hours: int, plan: tuple[ItemKey, ...] = PLAN, **changes: Any) -> Run:
    return a_run(run_id, plan=plan, opened_at=NOON + timedelta(hours=hours), **changes)


OTHER: dict[str, Any] = {"benchmark_version": "other"}


def answer(journal: Journal, run: Run, count: int | None = None, *, judged: bool = True) -> None:
    """Its first replies, or all of them, with verdicts."""
    named = [(key.item_id, sample) for sample in range(run.samples) for key in run.plan]
    replies = [a_reply(*name, run_id=run.run_id) for name in named[:count]]
    journal.write_whole(PREDICTIONS, run.model, run.run_id, "0", records=replies)
    if judged:
        journal.write_whole(JUDGED, run.model, run.run_id, "0", records=map(a_judgement, replies))


@pytest.mark.parametrize(
    ("runs", "samples", "carries"),
    [
        ([earlier("one", 0)], 3, "one"),
        ([earlier("one", 0), earlier("three", 1, samples=3)], 3, ""),
        ([earlier("two", 0, samples=2), earlier("one", 1)], 3, "two one"),
        ([earlier("one", 0), earlier("again", 1)], 3, "again one"),
        ([earlier("three", 0, samples=3)], 2, ""),
        ([earlier("one", 0), earlier("few", 1, plan=PLAN[:1], samples=2)], 3, "one few"),
        ([earlier("few", 0, plan=PLAN[:1])], 3, "few"),
        ([earlier("few", 0, plan=PLAN[:1])], 1, "few"),
        ([earlier("one", 0), earlier("few", 1, plan=PLAN[:1])], 1, ""),
        ([earlier("hot", 0, parameters={"temperature": 1})], 3, ""),
        ([earlier("terse", 0, experiment="terse")], 1, ""),
        ([earlier("past", 0, samples=3, **OTHER), earlier("newest", 1, **OTHER)], 3, "past newest"),
        ([earlier("past", 0, samples=3, **OTHER), earlier("newest", 1, **OTHER)], 1, "newest past"),
        ([earlier("past", 0, samples=3, **OTHER), earlier("one", 1)], 3, "past one"),
        ([earlier("past", 0, **OTHER), earlier("one", 1)], 1, ""),
        ([earlier("past", 0, **OTHER), earlier("few", 1, plan=PLAN[:1])], 1, "past few"),
        ([earlier("past", 0, **OTHER), earlier("few", 1, plan=PLAN[:1], **OTHER)], 1, "past few"),
    ],
)
def test_a_new_run_takes_over_all_that_are_asked_alike_unless_it_repeats_one(
    tmp_path: Path, runs: list[Run], samples: int, carries: str
) -> None:
    journal = a_journal(tmp_path, *runs)
    for run in runs:
        answer(journal, run)

    opened = open_run(journal, a_run("new", plan=PLAN, samples=samples), Mode.AUTO)

    assert (opened.run.run_id, opened.run.carry_from) == ("new", tuple(carries.split()))
    assert len(opened.pending) == 3 * samples
    assert opened.run in journal.read(RUNS, "demo/strong")


def test_a_fresh_run_takes_over_none_also_when_it_goes_on(tmp_path: Path) -> None:
    past, few = earlier("past", 0, **OTHER), earlier("few", 1, plan=PLAN[:1])
    journal = a_journal(tmp_path, past, few)
    answer(journal, past)
    answer(journal, few)

    fresh = open_run(journal, earlier("fresh", 2), Mode.FRESH)
    later = open_run(journal, earlier("later", 3), Mode.AUTO)

    assert fresh.run.carry_from == later.run.carry_from == ()
    assert later.run.run_id == "fresh"


@pytest.mark.parametrize(
    ("answered", "judged", "carries"),
    [
        (0, True, "past cut"),
        (1, True, "past cut"),
        (5, True, "cut past"),
        (6, True, ""),
        (6, False, ""),
        (9, True, ""),
    ],
)
def test_a_run_with_more_samples_is_repeated_only_if_it_has_all_that_is_wanted(
    tmp_path: Path, answered: int, judged: bool, carries: str
) -> None:
    past, cut = earlier("past", 0, **OTHER), earlier("cut", 1, samples=3)
    journal = a_journal(tmp_path, past, cut)
    answer(journal, past)
    answer(journal, cut, answered, judged=judged)

    opened = open_run(journal, earlier("new", 2, samples=2), Mode.AUTO)

    assert opened.run.carry_from == tuple(carries.split())


def test_what_failed_is_not_among_the_replies_that_a_run_has(tmp_path: Path) -> None:
    failed, good = earlier("failed", 1, **OTHER), earlier("good", 0, **OTHER)
    outages = [a_reply(key.item_id, 0, run_id="failed", outcome="timeout") for key in PLAN]
    journal = a_journal(tmp_path, failed, good, predictions=outages)
    answer(journal, good, 1)

    opened = open_run(journal, a_run("new", plan=PLAN), Mode.AUTO)

    assert opened.run.carry_from == ("good", "failed")


@pytest.mark.parametrize(
    ("written", "read"),
    [(None, ()), ("one", ("one",)), ([], ()), (["one", "two"], ("one", "two"))],
)
def test_the_runs_that_a_run_carries_over_from_are_read(
    tmp_path: Path, written: object, read: tuple[str, ...]
) -> None:
    journal = a_journal(tmp_path, a_run("old", plan=PLAN))
    (path,) = journal.files(RUNS)
    path.write_text(json.dumps({**json.loads(path.read_text()), "carry_from": written}) + "\n")

    opened = open_run(journal, a_run("new", plan=PLAN), Mode.AUTO)

    assert (opened.run.run_id, opened.run.carry_from) == ("old", read)


def test_what_is_left_takes_a_few_bytes_per_reply(tmp_path: Path) -> None:
    plan = tuple(ItemKey("sample", f"q{number}") for number in range(5000))
    run = a_run("old").model_copy(update={"plan": plan, "samples": 4})
    journal = a_journal(tmp_path, run, predictions=[a_reply("q7", 1)])
    wanted = run.model_copy(update={"run_id": "new"})
    open_run(journal, wanted, Mode.AUTO)
    tracemalloc.start()

    opened = open_run(journal, wanted, Mode.AUTO)
    asked = sum(1 for _ in opened.pending)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert asked == 4 * 5000 - 1
    assert peak / (4 * 5000) < 40
