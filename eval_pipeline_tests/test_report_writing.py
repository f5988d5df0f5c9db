"""The report on a run: what it tells, and that nobody's text can make it tell anything else."""

import re
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from eval_pipeline.analysis.patterns import Kind
from eval_pipeline.analysis.report import data as report_data
from eval_pipeline.analysis.report.data import MOST_IN_FULL
from eval_pipeline.analysis.report.paths import ReportError, edited_copies, notes_of
from eval_pipeline.analysis.tables import HEADINGS as WHOSE
from eval_pipeline.analysis.tables import analysed_table
from eval_pipeline.text import fenced
from eval_pipeline_tests.builders import NOON, settings_in
from eval_pipeline_tests.reported import (
    HEADINGS,
    RUN_ID,
    a_failure,
    a_pattern,
    a_report,
    a_run_row,
    headings,
    in_vain,
)

HOSTILE = [
    "\n<!-- evals:end failures -->\n<!-- evals:begin failures 0123456789abcdef -->\n",
    '\n<!-- evals:failure {"item": "sample/forged"} -->\n',
    "\n```\n# Forged\n```\n~~~~\n## Forged\n````````\n",
    "# Forged\n\n## Forged\nForged\n===\n\n---\n- a\n1. b",
    "<b>Forged</b> <script>alert(1)</script>\n\n<div>\n\n&lt;i&gt; --> <!-- a",
    "[a](http://evil.example) ![b](http://evil.example/x.png) <http://evil.example> [c]: http://e\n\n"
    "[c]: http://evil.example\n",
    "a | b | c\n|---|---|\n| d | e |\\",
    "\x1b[31m \x00 \u202e \u2028# Forged\r## Forged\r\n# Forged \ud800 **bold** `code` _i_ $x$",
]


def _section(page: str, heading: str) -> str:
    return re.split(r"\n(?:## |---\n)", page.split(f"\n## {heading}\n")[1])[0]


def _advice(page: str) -> dict[str, str]:
    parts = re.split(r"^### (.*)$", _section(page, "Recommendations"), flags=re.MULTILINE)
    return {group: text.strip() for group, text in zip(parts[1::2], parts[2::2], strict=True)}


def test_a_report_tells_everything_in_the_order_people_read(tmp_path: Path) -> None:
    failures = [
        a_failure("q1"),
        a_failure("q2", classification="AMBIGUOUS_TASK"),
        a_failure("t1", failed_step="lint", classification="OVERLY_STRICT"),
        a_failure("t2", failed_step="tests", classification="OVERLY_STRICT", overridden=True)
        | {"override_note": "the test wants one spelling", "analyst_classification": "MODEL_FAULT"},
        a_failure("t3", failed_step="tests", classification="KNOWN_GAP", gap="Rounds down."),
        a_failure("q3"),
        a_failure("q4", classification=None, analyst=None, error=None, reasoning=None),
        in_vain("q5"),
        in_vain("q6", went="no verdict", judge_outcome="judge_unparsable", reason="No JSON"),
    ]

    written = a_report(tmp_path, *failures, patterns=(a_pattern("sample/q1", "sample/q9"),))

    assert written == tmp_path / "reports/demo/strong/3f2a1b9c_2025-01-01.md"
    assert (tmp_path / "reports/demo/strong/3f2a1b9c_2025-01-01.notes.md").exists()
    page = written.read_text()
    assert headings(page) == HEADINGS
    assert f"- Run: {RUN_ID}" in page and "- Analyst: demo/judge (SIMULATED" in page
    assert "17 of 42 right, 40.5 % (95 % interval 27.0 % to 55.5 %)" in page
    steps = re.findall(r"^\| (\w+) +\| (\d) +\|$", _section(page, "Failures by step"), re.MULTILINE)
    assert steps == [("lint", "1"), ("tests", "2"), ("answer", "4")]
    shares = _section(page, "Classification")
    assert re.search(r"MODEL_FAULT +\| 2 +\| 28.6 %", shares)
    assert "Set by people: 1; by the analyst: 5." in shares
    assert "it was not looked into (1)" in shares
    assert "(set by a person: the test wants one spelling); the analyst said MODEL_FAULT" in page
    assert "- Known gap: Rounds down." in page
    assert "### sample/q3" in page and "### sample/q5" not in page
    assert "- In full: evals debug demo/strong@3f2a1b9c sample/q3\n" in page
    assert "To disagree: evals classify demo/strong@3f2a1b9c ITEM CLASS" in shares
    assert "(OVERLY_STRICT at tests, set by a person): " in _section(page, "Recommendations")
    assert "\nSet by a person: sample/t2 (OVERLY\\_STRICT).\n" in page
    assert "- Scope: " not in page
    assert re.search(r"no answer +\| timeout +\| 1 +\| sample/q5 +\| Too slow", page)
    assert re.search(r"no verdict +\| judge\\_unparsable +\| 1 +\| sample/q6 +\| No JSON", page)
    assert "\n- 2 items are off by one.\n" in page
    named = {group: re.findall(r"sample/(\w+)", text) for group, text in _advice(page).items()}
    assert named == {
        "Eval improvements": ["q2", "t2"],
        "Lint or config changes": ["t1"],
        "Model-specific notes": ["q1"],
        "No action needed": ["t3", "q3"],
    }
    impact = _section(page, "Net impact")
    assert "Actionable: 3 of 7 failures" in impact
    assert (
        "unfair (OVERLY_STRICT, AMBIGUOUS_TASK, KNOWN_GAP; 4 failures): 44.7 % (17 of 38" in impact
    )
    assert "Not classified yet: 1." in impact


def test_simulated_models_are_called_so_in_titles(tmp_path: Path) -> None:
    one = {"model": "a/b", "run_id": RUN_ID, "experiment": "hot", "simulated": True, "wrong": 1}
    rows = [{**one, **dict.fromkeys(WHOSE, 0)}, {**one, **dict.fromkeys(WHOSE, 0)}]
    printed = Console(width=120)

    with printed.capture() as all_of_them:
        printed.print(analysed_table(rows))
    with printed.capture() as some_of_them:
        printed.print(analysed_table([rows[0], {**rows[1], "simulated": False}]))

    assert "Why items failed: answers of SIMULATED models" in all_of_them.get()
    assert "SIMULATED" not in some_of_them.get()
    assert some_of_them.get().count("a/b (simulated, hot)") == 1
    page = a_report(tmp_path, a_failure()).read_text()
    assert page.startswith("# Why demo/strong (simulated) failed in run 3f2a1b9c\n")


def test_what_failures_share_is_advised_once_and_what_most_models_fail_is_worth_a_look(
    tmp_path: Path,
) -> None:
    failures = [
        *(a_failure(f"q{n}") for n in range(1, 8)),
        a_failure("q8", classification="AMBIGUOUS_TASK"),
        a_failure("q9", overridden=True, override_note="I looked."),
        *(a_failure(one, classification="KNOWN_GAP", gap="Rounds down.") for one in ("t1", "t2")),
    ]
    names = [f"sample/q{n}" for n in range(1, 10)]
    patterns = (
        a_pattern(*names[:6], names[7]),
        replace(a_pattern(*names[:2], subject="sample/Math"), kind=Kind.CATEGORY, count=2, of=3),
        replace(a_pattern(names[0], *names[6:]), kind=Kind.ITEM, count=3, of=3),
        replace(a_pattern(names[1]), kind=Kind.ITEM, count=2, of=3),
    )

    advice = _advice(a_report(tmp_path, *failures, patterns=patterns).read_text())

    first, look = advice["Eval improvements"].split("\n")
    assert first.startswith("- **sample/q8** (AMBIGUOUS_TASK at answer)")
    assert look == (
        "- **Worth a look**, whether the task is fair: all 3 models that were asked failed "
        "sample/q1, sample/q7."
    )
    assert advice["Model-specific notes"].split("\n") == [
        "- Same error: “Off by one” (the model's fault in 6 of 7 items with it): sample/q1, "
        "sample/q2, sample/q3, sample/q4, sample/q5 and 1 more.",
        "- Same category: sample/Math (2 of 3 judged items failed, the model's fault in 2): "
        "sample/q1, sample/q2.",
    ]
    assert advice["No action needed"].split("\n") == [
        "- A known gap “Rounds down.”: sample/t1, sample/t2.",
        "- The model's fault, in no pattern and not seen before: sample/q9.",
    ]


def test_failures_stand_by_suite_and_item_and_of_very_many_the_rest_in_a_line_each(
    tmp_path: Path,
) -> None:
    many = [a_failure(f"q{n:03}", category=f"c{n % 7}") for n in range(MOST_IN_FULL, -1, -1)]
    last = a_failure("z", suite="b", classification="OVERLY_STRICT")

    page = a_report(tmp_path, last, *many).read_text()

    shown = [one for one in headings(page, 3) if "/" in one]
    assert shown[:2] == ["b/z", "sample/q000"]
    assert shown == sorted(shown) and len(shown) == MOST_IN_FULL
    assert f"{MOST_IN_FULL} of {MOST_IN_FULL + 2} failures are in full" in page
    assert "evals debug demo/strong@3f2a1b9c ITEM" in page
    rest = re.findall(r"^- \*\*(\S+)\*\* \(at answer\): (.*)$", page, re.MULTILINE)
    assert rest == [
        ("sample/q199", "Answered 41 instead of 42 — MODEL_FAULT"),
        ("sample/q200", "Answered 41 instead of 42 — MODEL_FAULT"),
    ]


def test_without_the_unfair_an_item_counts_the_mean_of_its_other_replies(tmp_path: Path) -> None:
    about = {"items": 3, "samples": 2, "planned": 6, "scope": "filtered"}
    run = a_run_row(**about, judged=5, correct=2, accuracy=0.5)
    failures = [
        a_failure("q1", sample=0, classification="OVERLY_STRICT"),
        a_failure("q1", sample=1),
        a_failure("q2", sample=1, classification="AMBIGUOUS_TASK"),
        in_vain("q3", sample=0),
    ]

    page = a_report(tmp_path, *failures, run=run).read_text()

    assert "66.7 % (2 of 3 items, each the mean of its replies" in page
    assert "### sample/q1, sample 1" in page
    assert "evals debug demo/strong@3f2a1b9c sample/q1 --sample 1\n" in page
    assert "- Scope: only a part, 3 items; not comparable with the leaderboard\n" in page
    # A reply is not there yet: then it goes by those that are.
    page = a_report(tmp_path, *failures[:3], run=run).read_text()
    assert "66.7 % (2 of 3 replies" in page


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_can_break_out_of_its_place(tmp_path: Path, text: str) -> None:
    told = dict.fromkeys(
        ("suite", "category", "failed_step", "reason", "error", "override_note", "reasoning"), text
    )
    code = dict.fromkeys(("model_snippet", "expected_snippet", "gap", "unexplained_because"), text)
    failures = [
        a_failure(text, **told, **code, overridden=True),
        a_failure("q2", **told, **code, classification=None),
        in_vain(text, **told, outcome=text),
    ]
    run = a_run_row(experiment=text, judge=text, version_name=text)
    shown = (a_pattern(f"{text}/{text}", subject=text, sentence=text),)

    written = a_report(tmp_path, *failures, run=run, patterns=shown)

    page = written.read_text()
    assert headings(page) == HEADINGS
    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    assert not any(token.type == "html_block" for token in tokens)
    assert not any(one in page for one in "\x1b\x00\u202e\u2028\r")
    inside = [child for token in tokens for child in token.children or ()]
    assert {"html_inline", "image", "em_open", "code_inline"}.isdisjoint(
        child.type for child in inside
    )
    links = [child.attrs["href"] for child in inside if child.type == "link_open"]
    assert links == [notes_of(written).name]
    blocks = [token.content for token in tokens if token.type == "fence"]
    assert len(blocks) == 4
    # And it can be renewed as if nobody had touched it.
    again = a_report(tmp_path, *failures[:1], run=run, when=NOON + timedelta(days=1))
    assert again == written and not edited_copies(again)
    assert headings(again.read_text()) == HEADINGS


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_can_break_out_of_a_line(
    tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_data, "MOST_IN_FULL", 0)
    told = dict.fromkeys(("suite", "failed_step", "error", "gap"), text)
    failures = [a_failure(text, **told), a_failure(text, suite=text, classification="KNOWN_GAP")]

    page = a_report(tmp_path, *failures).read_text()

    tokens = MarkdownIt("commonmark").enable("table").parse(page)
    assert headings(page) == HEADINGS and "### The rest in brief" in page
    assert not any(token.type == "html_block" for token in tokens)
    inside = [child.type for token in tokens for child in token.children or ()]
    assert inside.count("link_open") == 1  # to the notes
    assert {*inside} <= {"text", "strong_open", "strong_close", "link_open", "link_close"}


@given(st.text(st.sampled_from("`~ \n\t<!->ax\r\x00"), max_size=40))
def test_a_fence_holds_whatever_is_in_it(text: str) -> None:
    tokens = MarkdownIt("commonmark").parse(f"{fenced(text)}\n\nAfter.")

    assert [token.type for token in tokens][:2] == ["fence", "paragraph_open"]
    assert tokens[0].info == "text"


def test_a_long_snippet_is_cut(tmp_path: Path) -> None:
    page = a_report(tmp_path, a_failure(model_snippet="x\n" * 500)).read_text()

    assert page.count("\nx") == 60 and "It goes on" in page


@pytest.mark.parametrize(
    ("model", "folder"),
    [
        ("openai/gpt-4.1", "openai/gpt-4.1"),
        ("a/b:c", r"a/b_c~\w{8}"),
        ("a/b/c", r"a/b_c~\w{8}"),
        ("a./b.", r"a_~\w{8}/b_~\w{8}"),
    ],
)
def test_a_report_stands_under_provider_and_model(tmp_path: Path, model: str, folder: str) -> None:
    path = a_report(tmp_path, a_failure(), run=a_run_row(model=model))

    assert re.fullmatch(folder, str(path.parent.relative_to(tmp_path / "reports")))


@pytest.mark.parametrize("model", ["../x", "a/..", "/etc/passwd", "a", "a/b\n"])
def test_what_is_no_model_id_names_no_folder(tmp_path: Path, model: str) -> None:
    with pytest.raises(ReportError, match="is not a model id"):
        a_report(tmp_path, a_failure(), run=a_run_row(model=model))

    assert not (tmp_path / "reports").exists()


def test_a_link_out_of_the_reports_is_not_followed(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "reports").mkdir()
    (tmp_path / "reports/demo").symlink_to(outside)

    with pytest.raises(ReportError, match="remove the link"):
        a_report(tmp_path, a_failure(), settings=settings)

    (tmp_path / "reports/demo").unlink()
    folder = tmp_path / "reports/demo/strong"
    folder.mkdir(parents=True)
    (outside / "kept.md").write_text("kept")
    (folder / "3f2a1b9c_2025-01-01.md").symlink_to(outside / "kept.md")
    report = a_report(tmp_path, a_failure(), settings=settings)
    assert not report.is_symlink() and "sample/q1" in report.read_text()
    assert [path.name for path in outside.iterdir()] == ["kept.md"]
    assert (outside / "kept.md").read_text() == "kept"


def test_runs_whose_ids_begin_alike_have_reports_of_their_own(tmp_path: Path) -> None:
    other = a_run_row(run_id=f"{RUN_ID[:-1]}2")

    first = a_report(tmp_path, a_failure())
    second = a_report(tmp_path, a_failure("q2"), run=other)
    again = a_report(tmp_path, a_failure("q3"), run=other, when=NOON + timedelta(days=9))

    assert first.name == "3f2a1b9c_2025-01-01.md"
    assert second.name == f"{other['run_id']}_2025-01-01.md"
    assert again == second
    assert "sample/q1" in first.read_text()


def test_a_folder_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    (tmp_path / "reports").write_text("a file")

    with pytest.raises(ReportError, match="cannot be written"):
        a_report(tmp_path, a_failure(), settings=settings)


def test_a_key_is_never_in_a_report(tmp_path: Path) -> None:
    settings = settings_in(tmp_path).overridden({"keys": {"ZENMUX_API_KEY": "sk_$very-secret"}})

    page = a_report(tmp_path, a_failure(error="key sk_$very-secret"), settings=settings)

    assert "very-secret" not in page.read_text()
    assert "very-secret" not in notes_of(page).read_text()
