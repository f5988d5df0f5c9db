"""Which items a run covers, which run goes on, and what is left to ask in it."""

import json
import tracemalloc
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.records import ItemKey, Outcome, PlanFilter, Prediction, Run, Scope
from eval_pipeline.runs import Mode, RunError, choose, new_run, open_run
from eval_pipeline.settings import Experiment
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
        a_model(),
        benchmark,
        PlanFilter(),
        experiment_name="default",
        experiment=Experiment(),
        system_prompt_hash="",
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

    asked = " ".join(key.item_id for key in opened.pending)
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

    assert (opened.run.run_id, opened.pending) == ("old", ())


def test_a_dagster_run_that_is_tried_again_goes_on_with_its_own_run(tmp_path: Path) -> None:
    journal = a_journal(tmp_path, a_run("same"), predictions=[a_prediction(run_id="same")])

    opened = open_run(journal, a_run("same"), Mode.FRESH)

    assert opened.pending == ()


def test_a_retry_of_a_failed_dagster_run_goes_on_with_what_that_one_opened(tmp_path: Path) -> None:
    journal = a_journal(
        tmp_path, a_run("first", plan=PLAN), predictions=[a_prediction(run_id="first")]
    )

    opened = open_run(journal, a_run("second", plan=PLAN), Mode.FRESH, retry_of="first")

    assert (opened.run.run_id, opened.pending) == ("first", PLAN[1:])


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
        ({"experiment": "terse"}, None),
        ({"benchmark_version": "other"}, "old"),
        ({"parameters": {"temperature": 1}}, None),
        ({"plan": PLAN[:2]}, None),
    ],
)
def test_a_run_that_measures_something_else_is_not_continued(
    tmp_path: Path, changes: dict[str, object], carries: str | None
) -> None:
    journal = a_journal(tmp_path, a_run("old", plan=PLAN))
    wanted = a_run("new", plan=PLAN).model_copy(update=changes)

    opened = open_run(journal, wanted, Mode.AUTO)

    assert opened.run == wanted.model_copy(update={"carry_from": carries})
    assert opened.pending == wanted.plan


@pytest.mark.parametrize(
    ("mode", "run_id", "reason"),
    [
        (Mode.AUTO, "beef", "demo/strong has no run beef; its latest runs: old"),
        (Mode.AUTO, "old", "Run old was made under the experiment 'terse'"),
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

    finished = outcome in {"ok", "refused", "truncated", "content_filter"}
    assert (PLAN[0] in opened.pending) is not finished


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
    assert opened.pending == plan


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
    assert opened.pending == (PLAN[0], PLAN[2])
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

    assert list(opened.pending) == plan[-1:]
    assert peak < 400 * len(answer) / 8
