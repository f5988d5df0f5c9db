"""Earlier reports of the same model: repeats, and actions that should have helped."""

import json
import os
from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.analysis.report.earlier import LARGEST, Action
from eval_pipeline.overview import Row
from eval_pipeline_tests.builders import NOON
from eval_pipeline_tests.reported import a_failure, a_report, a_run_row

NEXT = "9d8c7b6a-0000-4000-8000-000000000002"
LINK = "[3f2a1b9c\\_2025-01-01](3f2a1b9c_2025-01-01.md)"


def _next_run(**changes: object) -> Row:
    opened = (NOON + timedelta(days=7)).replace(tzinfo=None)
    return a_run_row(run_id=NEXT, opened_at=opened, **changes)


def _failure(page: str, item_id: str) -> str:
    return page.split(f"\n### sample/{item_id}\n")[1].split("\n### ", 1)[0]


def test_what_failed_before_is_a_repeat_with_the_same_error_or_another(tmp_path: Path) -> None:
    a_report(tmp_path, a_failure("q1"), a_failure("q2"), a_failure("q3", error=None))
    failures = [
        a_failure("q1", error="answered 40 instead of 42."),
        a_failure("q2", error="Gave up --> at once"),
        a_failure("q3"),
        a_failure("q4"),
    ]

    page = a_report(tmp_path, *failures, run=_next_run()).path.read_text()

    assert f"- Repeat: also failed in {LINK}, same error\n" in _failure(page, "q1")
    assert f"- Repeat: also failed in {LINK}, another error\n" in _failure(page, "q2")
    assert f"- Repeat: also failed in {LINK}\n" in _failure(page, "q3")
    assert "Repeat" not in _failure(page, "q4")
    notes = page.split("### Model-specific notes")[1].split("### No action needed")
    assert [f"q{one}" in notes[0] for one in (1, 2, 3, 4)] == [True, True, True, False]
    assert "sample/q4" in notes[1]


def test_the_report_on_an_earlier_run_knows_nothing_of_later_ones(tmp_path: Path) -> None:
    a_report(tmp_path, a_failure(), run=_next_run())

    page = a_report(tmp_path, a_failure(), when=NOON + timedelta(days=30)).path.read_text()

    assert "Repeat" not in page


def test_an_action_that_should_have_helped_is_called_out(tmp_path: Path) -> None:
    before = a_report(tmp_path, *map(a_failure, ("q1", "q_2", "q3", "q4"))).path
    actions = (
        "- [x] Reworded\n  sample/q1 and `q_2` <!-- q4 -->\n- [ ] Look at q3\n\nother/q4, q44 and "
        "q4-b are fine.\n\n```\nq4\n```\n"
    )
    page = before.read_text().replace("## Actions taken\n", f"## Actions taken\n\n{actions}")
    before.write_text(page)

    failures = [a_failure(one) for one in ("q1", "q_2", "q3", "q4")]
    page = a_report(tmp_path, *failures, run=_next_run()).path.read_text()

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
    before = a_report(tmp_path, a_failure()).path
    actions = f"## Actions taken\n\n- [x] {day}: reworded q1\n"
    before.write_text(before.read_text().replace("## Actions taken\n", actions))

    page = a_report(tmp_path, a_failure(), run=_next_run()).path.read_text()

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


def test_what_is_no_report_is_left_out_with_a_warning(tmp_path: Path) -> None:
    folder = a_report(tmp_path, a_failure()).path.parent
    (folder / "notes.md").write_text('<!-- evals:failure {"item": "sample/q1"} -->\n')
    with (folder / "huge.md").open("wb") as file:
        file.truncate(LARGEST + 1)
    (folder / "latin.md").write_bytes(b"caf\xe9")
    (folder / "folder.md").mkdir()
    os.mkfifo(folder / "pipe.md")
    (folder / "link.md").symlink_to("/etc/passwd")

    written = a_report(tmp_path, a_failure(), run=_next_run())

    assert sorted(Path(one.split(" is left out")[0]).stem for one in written.warnings) == [
        "folder",
        "huge",
        "latin",
        "link",
        "notes",
        "pipe",
    ]
    assert written.path.read_text().count("also failed in") == 1


def test_an_edited_report_can_not_put_markup_into_later_ones(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    page = path.read_text().replace(
        "## Actions taken\n", "## Actions taken\n\n- q1 <b>x</b> [a](http://e) <img src=x>\n"
    )
    path.write_text(page + '<!-- evals:failure {"item": ' + "[" * 5000 + "} -->\n")
    path.rename(path.with_name("a](b) [c.md"))

    page = a_report(tmp_path, a_failure(), run=_next_run()).path.read_text()

    assert "[a\\](b) \\[c](a%5D%28b%29%20%5Bc.md), same error" in page
    assert "q1 \\<b\\>x\\</b\\> \\[a\\](http\\://e)" in page


def test_a_file_with_a_day_that_is_none_is_no_report(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    day = "0001-01-01T00:00:00+14:00"
    head = {"run_id": "q", "model": "demo/strong", "opened": day, "analysed": day}
    (path.parent / "x.md").write_text(f"<!-- evals:report {json.dumps(head)} -->\n")

    assert a_report(tmp_path, a_failure(), run=_next_run()).created
