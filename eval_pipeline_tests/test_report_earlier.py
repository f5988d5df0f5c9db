"""Earlier runs of the same model: repeats, and actions that should have helped."""

import os
from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.analysis.report.earlier import (
    Action,
    EarlierFailure,
    EarlierRun,
    actions_in,
    earlier_runs,
    read_convex_report,
)
from eval_pipeline.analysis.report.paths import notes_of
from eval_pipeline.analysis.report.write import ACTIONS
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Run
from eval_pipeline.results.runs import Row, run_rows
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.builders import NOON, a_journal, a_judgement, settings_in
from eval_pipeline_tests.failing import EXAM, QUESTIONS, opened, replies
from eval_pipeline_tests.reported import RUN_ID, a_failure, a_report, a_run_row

NEXT = "9d8c7b6a-0000-4000-8000-000000000002"
LINK = "[3f2a1b9c\\_2025-01-01](3f2a1b9c_2025-01-01.md)"


def _next_run(**changes: object) -> Row:
    opened_at = (NOON + timedelta(days=7)).replace(tzinfo=None)
    return a_run_row(run_id=NEXT, opened_at=opened_at, **changes)


def _earlier(
    *items: str, error: str | None = "Answered 41 instead of 42", report: Path | None = None
) -> EarlierRun:
    failures = {f"sample/{item}": [EarlierFailure(None, error)] for item in items}
    actions = actions_in(notes_of(report)) if report else ()
    return EarlierRun(RUN_ID, NOON, failures, report, actions)


def _failure(page: str, item_id: str) -> str:
    return page.split(f"\n### sample/{item_id}\n")[1].split("\n### ", 1)[0]


def test_what_failed_before_is_a_repeat_with_the_same_error_or_another(tmp_path: Path) -> None:
    before = a_report(tmp_path, a_failure())
    failures = [
        a_failure("q1", error="answered 40 instead of 42."),
        a_failure("q2", error="Gave up --> at once"),
        a_failure("q3", error=None),
        a_failure("q4"),
    ]
    earlier = (_earlier("q1", "q2", "q3", report=before),)

    page = a_report(tmp_path, *failures, run=_next_run(), earlier=earlier).read_text()

    assert f"- Repeat: also failed in {LINK}, same error\n" in _failure(page, "q1")
    assert f"- Repeat: also failed in {LINK}, another error\n" in _failure(page, "q2")
    assert f"- Repeat: also failed in {LINK}\n" in _failure(page, "q3")
    assert "Repeat" not in _failure(page, "q4")
    notes = page.split("### Model-specific notes")[1].split("### No action needed")
    assert [f"q{one}" in notes[0] for one in (1, 2, 3, 4)] == [True, True, True, False]
    assert "sample/q4" in notes[1]


def test_an_earlier_run_without_a_report_is_named_by_its_id(tmp_path: Path) -> None:
    page = a_report(tmp_path, a_failure(), run=_next_run(), earlier=(_earlier("q1"),)).read_text()

    assert "- Repeat: also failed in run 3f2a1b9c of 2025-01-01, same error\n" in page


def test_an_action_that_should_have_helped_is_called_out(tmp_path: Path) -> None:
    before = a_report(tmp_path, a_failure())
    notes = notes_of(before)
    notes.write_text(
        f"{notes.read_text()}\n- [x] Reworded\n  sample/q1 and `q_2` <!-- q4 -->\n- [ ] Look at q3"
        "\n\nother/q4, q44 and q4-b are fine.\n\n```\nq4\n```\n"
    )
    failures = [a_failure(one) for one in ("q1", "q_2", "q3", "q4")]

    page = a_report(
        tmp_path, *failures, run=_next_run(), earlier=(_earlier(report=before),)
    ).read_text()

    fixed = f"An action recorded in {LINK} should have fixed this: "
    said = f'{fixed}"Reworded sample/q1 and \\`q\\_2\\`"'
    assert said in _failure(page, "q1") and said in _failure(page, "q\\_2")
    assert f"- An action recorded in {LINK} should have fixed sample/q1, sample/q\\_2." in page
    open_one = f'An action noted in {LINK} is not ticked off yet: "Look at q3"'
    assert open_one in _failure(page, "q3")
    assert "action" not in _failure(page, "q4").split("## Infrastructure")[0]


@pytest.mark.parametrize(
    ("day", "is_later"),
    [("2025-01-08", False), ("**2025-01-09**", True), ("2025-13-99", False), ("20250109", False)],
)
def test_an_action_that_came_after_the_run_could_not_help(
    tmp_path: Path, day: str, is_later: bool
) -> None:
    before = a_report(tmp_path, a_failure())
    notes_of(before).write_text(f"# {ACTIONS}\n\n- [x] {day}: reworded q1\n")

    page = a_report(
        tmp_path, a_failure(), run=_next_run(), earlier=(_earlier(report=before),)
    ).read_text()

    assert (f"An action recorded in {LINK} is later than this run: " in page) is is_later
    assert (page.count("should have fixed") == 0) is is_later


@pytest.mark.parametrize(
    ("text", "is_named"),
    [
        ("Mended q1.", True),
        ("(sample/q1)", True),
        ("q1, q2", True),
        ("q10", False),
        ("other/q1", False),
        ("q1/extra", False),
        ("a-q1", False),
    ],
)
def test_an_action_names_an_item_as_a_whole_word(text: str, is_named: bool) -> None:
    assert Action(text).is_about("sample", "q1") is is_named


def test_what_can_not_be_read_has_no_actions(tmp_path: Path) -> None:
    (tmp_path / "latin.notes.md").write_bytes(b"- caf\xe9 q1\n")
    (tmp_path / "folder.notes.md").mkdir()
    os.mkfifo(tmp_path / "pipe.notes.md")
    (tmp_path / "link.notes.md").symlink_to("/etc/passwd")

    found = {name: actions_in(tmp_path / f"{name}.notes.md") for name in ("folder", "pipe", "link")}

    assert not any(found.values()) and not actions_in(tmp_path / "none.notes.md")
    assert actions_in(tmp_path / "latin.notes.md")[0].is_about("sample", "q1")
    assert read_convex_report(tmp_path / "folder.notes.md") is None


def test_notes_can_not_put_markup_into_later_reports(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure())
    notes_of(path).write_text(f"# {ACTIONS}\n\n- q1 <b>x</b> [a](http://e) <img src=x>\n")
    notes = notes_of(path).rename(path.with_name("a](b) [c.notes.md"))
    renamed = path.rename(notes.with_name("a](b) [c.md"))

    page = a_report(
        tmp_path, a_failure(), run=_next_run(), earlier=(_earlier("q1", report=renamed),)
    ).read_text()

    assert "[a\\](b) \\[c](a%5D%28b%29%20%5Bc.md), same error" in page
    assert "q1 \\<b\\>x\\</b\\> \\[a\\](http\\://e)" in page


def test_earlier_runs_are_those_before_with_the_failures_of_the_same_items(tmp_path: Path) -> None:
    first, second = opened("11111111-a", "demo/strong"), opened("22222222-b", "demo/strong", 1)
    third, other = opened("33333333-c", "demo/strong", 2), opened("44444444-d", "demo/weak")
    wrong = [*replies(first)[:2], *replies(second)[1:2], *replies(third)[1:2], *replies(other)[:2]]
    # The second run asked anew, and the third took over the reply of the second.
    wrong[3] = wrong[3].model_copy(update={"carried_from": second.run_id})
    settings = settings_in(tmp_path, questions=QUESTIONS)
    verdicts = [a_judgement(reply, 0.0) for reply in wrong]
    records: list[Run | Prediction | Judgement] = [first, second, third, other, *wrong, *verdicts]
    journal = a_journal(settings.data, *records, benchmark=EXAM)
    warehouse = Warehouse(settings.database, journal)
    warehouse.publish()

    with warehouse.reading() as db:
        known = run_rows(db, ())
        run = next(row for row in known if row["run_id"] == third.run_id)
        found = earlier_runs(db, settings.reports, run, known)

    assert [(one.run_id, list(one.failures)) for one in found] == [
        ("22222222-b", []),
        ("11111111-a", ["sample/q2"]),
    ]
