"""A second analysis of a run: it replaces the report, and keeps what people wrote."""

from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.analysis.report.paths import edited_copies, notes_of
from eval_pipeline_tests.builders import NOON
from eval_pipeline_tests.reported import HEADINGS, a_failure, a_report, headings

LATER = NOON + timedelta(days=3)


def test_a_second_analysis_with_nothing_new_writes_nothing(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure())
    before = path.stat()

    again = a_report(tmp_path, a_failure(), when=LATER)

    after = path.stat()
    assert again == path
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert sorted(path.parent.iterdir()) == [path, notes_of(path)]


def test_the_report_is_replaced_and_the_notes_stay(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure("q1"))
    notes = notes_of(path)
    notes.write_text("- Reworded q1.\n")

    again = a_report(tmp_path, a_failure("q2"), when=LATER)

    page = path.read_text()
    assert again == path and headings(page) == HEADINGS and "<!--" not in page
    assert "### sample/q2" in page and "### sample/q1" not in page
    assert "- Analysed: 2025-01-04 12:00" in page
    assert f"[3f2a1b9c\\_2025-01-01.notes.md]({notes.name})" in page
    assert notes.read_text() == "- Reworded q1.\n"
    assert edited_copies(path) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Answered 41 instead", "Answered 41, as usual, instead"),
        ("# Why demo/strong", '<!-- evals:report {"run_id": "3"} -->\n\n# Why demo/strong'),
        ("Checksum ", "We looked. Checksum "),
        ("\n---\n", "\n"),
    ],
)
def test_a_report_that_people_edited_is_kept_under_another_name(
    tmp_path: Path, old: str, new: str
) -> None:
    path = a_report(tmp_path, a_failure())
    written = path.read_text()
    edited = written.replace(old, new)
    path.write_text(edited)

    a_report(tmp_path, a_failure(), when=NOON)
    first = edited_copies(path)
    path.write_text(f"{path.read_text()}Read.\n")
    a_report(tmp_path, a_failure(), when=NOON)

    assert path.read_text() == written
    assert [copy.name for copy in first] == [f"{path.name}.bak"]
    assert sorted(copy.read_text() for copy in edited_copies(path)) == sorted(
        [edited, f"{written}Read.\n"]
    )


def test_a_report_is_replaced_as_a_whole_under_the_name_it_has(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure())
    notes_of(path).unlink()
    renamed = path.rename(path.with_name("Arithmetic of strong.md"))
    (tmp_path / "opened.md").hardlink_to(renamed)
    before = renamed.read_text()

    again = a_report(tmp_path, a_failure("q2"), when=LATER)

    assert again == renamed
    assert sorted(path.parent.iterdir()) == [renamed, notes_of(renamed)]
    assert (tmp_path / "opened.md").read_text() == before != renamed.read_text()


def test_a_file_that_no_longer_says_which_run_it_is_about_is_kept(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure())
    page = path.read_text().replace("- Run: ", "- A run: ")
    path.write_bytes(page.encode() + b"caf\xe9")

    a_report(tmp_path, a_failure("q2"))

    (copy,) = edited_copies(path)
    assert copy.read_bytes() == page.encode() + b"caf\xe9"
    assert "### sample/q2" in path.read_text()
