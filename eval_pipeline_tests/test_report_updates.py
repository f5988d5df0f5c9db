"""A second analysis of a run: it renews what is ours, and leaves alone what is people's."""

from datetime import timedelta
from pathlib import Path

import pytest

from eval_pipeline.analysis.report import ReportError
from eval_pipeline_tests.builders import NOON
from eval_pipeline_tests.reported import HEADINGS, a_failure, a_report, headings

LATER = NOON + timedelta(days=3)


def test_a_second_analysis_with_nothing_new_writes_nothing(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    before = path.stat()

    again = a_report(tmp_path, a_failure(), when=LATER)

    after = path.stat()
    assert (again.path, again.created) == (path, False)
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert list(path.parent.iterdir()) == [path]


def test_what_people_wrote_is_kept_and_the_rest_is_renewed(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    page = path.read_text()
    page = page.replace("Answered 41 instead of 42\n- Class", "Answered 41, as usual\n- Class")
    page = page.replace(
        "\n## Actions taken\n", "\nA word between.\n\n## Actions taken\n\n- Wrote.\n"
    )
    path.write_text(f"Read me first.\n\n{page}\nThe end, without a newline")

    again = a_report(tmp_path, a_failure(), a_failure("q2"), when=LATER)

    renewed = path.read_text()
    assert (again.path, again.kept, again.created) == (path, ("sample/q1",), False)
    assert renewed.startswith("Read me first.\n\n<!-- evals:report ")
    assert renewed.endswith("\nThe end, without a newline")
    assert "- Error: Answered 41, as usual" in renewed and "### sample/q2" in renewed
    assert "\nA word between.\n\n## Actions taken\n\n- Wrote.\n" in renewed
    assert "- Edited by hand, and so left as they are: sample/q1" in renewed
    assert "Actionable: 0 of 2 failures" in renewed and "- Analysed: 2025-01-04 12:00" in renewed
    assert headings(renewed) == HEADINGS
    before = path.stat().st_mtime_ns
    assert a_report(tmp_path, a_failure(), a_failure("q2"), when=LATER + timedelta(days=1)).kept
    assert path.stat().st_mtime_ns == before


def _shown(path: Path) -> list[str]:
    return [one for one in headings(path.read_text(), 3) if one.startswith("sample/")]


def test_failures_come_and_go_each_by_itself(tmp_path: Path) -> None:
    path = a_report(tmp_path, *map(a_failure, ("q2", "q3", "q4", "q6"))).path
    page = path.read_text().replace("### sample/q3\n", "### sample/q3\n\nI looked.\n")
    path.write_text(page)

    # q2, q3 and q6 are right now.
    now = [a_failure(one, error="Another") for one in ("q1", "q4", "q5", "q7")]
    again = a_report(tmp_path, *now, when=LATER)

    assert again.kept == ("sample/q3",)
    assert _shown(path) == [f"sample/q{n}" for n in (1, 3, 4, 5, 7)]
    renewed = path.read_text()
    assert renewed.count("- Error: Another\n") == 4 and "I looked." in renewed
    assert "\n\n\n" not in renewed
    path.write_text(renewed.replace("\nI looked.\n", ""))
    anew = a_report(tmp_path / "anew", *now, when=LATER).path
    assert a_report(tmp_path, *now, when=LATER).kept == ()
    assert path.read_text() == anew.read_text()


def test_failures_come_to_a_report_that_has_none_and_ends_with_their_heading(
    tmp_path: Path,
) -> None:
    path = a_report(tmp_path).path
    page = path.read_text().split("<!-- evals:begin infrastructure")[0].rstrip("\n")
    path.write_bytes(page.replace("\n", "\r\n").encode())

    a_report(tmp_path, a_failure("q1"), a_failure("q2"), when=LATER)

    assert _shown(path) == ["sample/q1", "sample/q2"]
    assert path.read_bytes().count(b"\n") == path.read_bytes().count(b"\r\n")


def test_a_failure_that_somebody_removed_stays_away_until_it_is_new_again(tmp_path: Path) -> None:
    both = [a_failure("q1"), a_failure("q2")]
    path = a_report(tmp_path, *both).path
    begin, _, rest = path.read_text().partition("<!-- evals:begin failure-")
    page = begin + "<!-- evals:begin failure-" + rest.partition("<!-- evals:begin failure-")[2]
    path.write_text(page)

    a_report(tmp_path, *both, a_failure("q3"), when=LATER)
    removed = _shown(path)
    a_report(tmp_path, *both, a_failure("q4"), when=LATER)
    still = _shown(path)
    a_report(tmp_path, a_failure("q2"), when=LATER)
    a_report(tmp_path, *both, when=LATER)

    assert (removed, still) == (["sample/q2", "sample/q3"], ["sample/q2", "sample/q4"])
    assert _shown(path) == ["sample/q1", "sample/q2"]


def test_a_section_that_somebody_removed_stays_away(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    begin, rest = path.read_text().split("<!-- evals:begin patterns", 1)
    path.write_text(begin + rest.split("<!-- evals:end patterns -->\n", 1)[1])

    again = a_report(tmp_path, a_failure("q2"), when=LATER)

    assert again.kept == ()
    assert headings(path.read_text()) == [one for one in HEADINGS if one != "Patterns"]


def test_where_the_heading_of_failures_is_removed_they_come_only_beside_others(
    tmp_path: Path,
) -> None:
    path = a_report(tmp_path, a_failure("q2")).path
    page = path.read_text()
    begin, _, rest = page.partition("<!-- evals:begin failures ")
    path.write_text(begin + rest.partition("<!-- evals:end failures -->\n")[2])

    a_report(tmp_path, *map(a_failure, ("q1", "q2", "q3")), when=LATER)
    beside = _shown(path)
    path.write_text(begin + "<!-- evals:begin infra" + page.partition("<!-- evals:begin infra")[2])
    a_report(tmp_path, *map(a_failure, ("q1", "q2", "q3")), when=LATER)

    assert beside == ["sample/q2", "sample/q1", "sample/q3"]
    assert _shown(path) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("<!-- evals:end patterns -->\n", "", "evals:begin patterns … --> in line .* has no <!--"),
        ("<!-- evals:end impact -->\n", "", "has no <!-- evals:end impact -->"),
        ("<!-- evals:begin patterns ", "<!-- evals:begin patterns x", "is a damaged marker"),
        ("## Patterns", "```\n## Patterns", "evals:begin patterns"),
        ("<!-- evals:end steps -->", "<!-- evals:end patterns -->", "evals:begin steps"),
    ],
)
def test_a_report_with_damaged_markers_is_left_as_it_is(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    path = a_report(tmp_path, a_failure()).path
    page = path.read_text().replace(old, new)
    path.write_text(page)

    with pytest.raises(ReportError, match=said):
        a_report(tmp_path, a_failure("q2"), when=LATER)

    assert path.read_text() == page
    assert list(path.parent.iterdir()) == [path]


def test_markers_in_code_of_peoples_are_no_markers(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    quoted = (
        "```\n<!-- evals:begin impact 0123456789abcdef -->\n````\n"
        "- ~~~\n  <!-- evals:end impact -->\n  ~~~\n\n  <!-- evals:end impact -->\n"
        "1. ```\n   never closed\n\n"
    )
    path.write_text(path.read_text().replace("## Actions taken\n", f"## Actions taken\n\n{quoted}"))

    again = a_report(tmp_path, a_failure("q2"), when=LATER)

    assert again.kept == ()
    assert quoted in path.read_text() and "### sample/q2" in path.read_text()


def test_what_an_editor_does_to_blanks_is_no_edit(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure(model_snippet="a  \n\n\tb ")).path
    lines = [line.rstrip() for line in path.read_text().splitlines()]
    path.write_bytes(("\ufeff" + "\r\n".join(lines)).encode())
    before = path.read_bytes()

    assert a_report(tmp_path, a_failure(model_snippet="a  \n\n\tb "), when=LATER).kept == ()
    assert path.read_bytes() == before
    assert a_report(tmp_path, a_failure("q2"), when=LATER).kept == ()

    renewed = path.read_bytes()
    assert renewed.startswith(b"\xef\xbb\xbf<!-- evals:report ") and b"sample/q2" in renewed
    assert renewed.count(b"\n") == renewed.count(b"\r\n")
    assert not renewed.endswith(b"\n")


def test_a_report_is_replaced_as_a_whole_under_the_name_and_mode_it_has(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    renamed = path.rename(path.with_name("Arithmetic of strong.md"))
    renamed.chmod(0o640)
    (tmp_path / "opened.md").hardlink_to(renamed)
    before = renamed.read_text()

    again = a_report(tmp_path, a_failure("q2"), when=LATER)

    assert again.path == renamed and renamed.stat().st_mode & 0o777 == 0o640
    assert list(path.parent.iterdir()) == [renamed]
    assert (tmp_path / "opened.md").read_text() == before != renamed.read_text()


def test_a_file_that_no_longer_says_whose_it_is_is_not_replaced(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    page = path.read_text().replace("evals:report", "report")
    path.write_text(page)

    with pytest.raises(ReportError, match="is in the way"):
        a_report(tmp_path, a_failure("q2"))

    assert path.read_text() == page


def test_a_report_in_another_encoding_is_left_as_it_is(tmp_path: Path) -> None:
    path = a_report(tmp_path, a_failure()).path
    path.write_bytes(path.read_bytes() + b"caf\xe9")

    with pytest.raises(ReportError, match="not in UTF-8"):
        a_report(tmp_path, a_failure("q2"))

    assert path.read_bytes().endswith(b"caf\xe9")
