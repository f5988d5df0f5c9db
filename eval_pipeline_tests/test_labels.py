"""Labels of people: read as a whole or refused, kept in the journal, matched to replies."""

import csv
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.errors import DatasetError
from eval_pipeline.journal import LABELS, Journal
from eval_pipeline.records.prediction import Label
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.exam import labels as module
from eval_pipeline.suites.exam.labels import (
    MOST_BYTES,
    MOST_CHARACTERS,
    WORDS,
    load_labels,
    read_labels,
)
from eval_pipeline_tests.builders import a_journal, a_prediction, a_run, settings_in

SHOWN = Path("labels.csv")
ALL_COLUMNS = "item_id,correct,suite,model,run_id,sample,labeller\n"


def read(folder: Path, content: str | bytes) -> Sequence[Label]:
    path = folder / SHOWN
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return read_labels(path, SHOWN)[0]


def problem_of(folder: Path, content: str | bytes) -> str:
    with pytest.raises(DatasetError) as caught:
        read(folder, content)
    return str(caught.value)


def test_a_label_says_as_much_as_its_file(tmp_path: Path) -> None:
    rows = "q1,yes,sample,demo/strong,run-1,2,Ada\n\n q2 ,WRONG,,,,,\n"

    labels = read(tmp_path, ALL_COLUMNS + rows)

    assert labels == [
        Label(
            line=2,
            item_id="q1",
            correct=True,
            suite="sample",
            model="demo/strong",
            run_id="run-1",
            sample=2,
            labeller="Ada",
        ),
        Label(line=4, item_id="q2", correct=False),
    ]


@pytest.mark.parametrize(
    ("word", "correct"),
    [(form(word), correct) for word, correct in WORDS.items() for form in (str, str.upper)],
)
def test_right_and_wrong_have_many_names(tmp_path: Path, word: str, correct: bool) -> None:
    (label,) = read(tmp_path, f"correct,item_id\n {word} ,q1\n")

    assert label.correct is correct


@pytest.mark.parametrize(
    "content",
    [
        "\ufeffitem_id,correct\nq1,1\n",
        "Item_ID , CORRECT\r\nq1,1\r\n",
        '"item_id","correct"\n"q1","1"',
        "correct,item_id\n1,q1\n\n\n,\n",
    ],
)
def test_what_spreadsheets_write_is_read(tmp_path: Path, content: str) -> None:
    labels = read(tmp_path, content)

    assert [(one.item_id, one.correct) for one in labels] == [("q1", True)]


@pytest.mark.parametrize("text", ["=1+1", "@SUM(A1)", '=HYPERLINK("http://a.b","c")', "+1", "-1"])
def test_a_formula_is_a_text(tmp_path: Path, text: str) -> None:
    cell = text.replace('"', '""')

    (label,) = read(tmp_path, f'item_id,correct,labeller\nq1,1,"{cell}"\n')

    assert label.labeller == text


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "labels.csv, line 1: there is no column item_id and no column correct."),
        ("item_id;correct\nq1;1\n", "separated by commas: item_id, correct, and if wanted suite"),
        ("item_id,model\nq1,a/b\n", "line 1: there is no column correct."),
        ("item_id,correct,correct\nq1,1,1\n", "the column correct is there more than once"),
        ("item_id,correct\nq1,1\nq2,maybe\n", "line 3, column correct: must be one of true, yes"),
        ("item_id,correct\nq1,\n", "line 2, column correct: must be one of"),
        ("item_id,correct\nq1,=1\n", "column correct: must be one of true, yes, 1, right, false"),
        ("item_id,correct\nq1,\uff11\n", "got '\uff11'"),
        ("item_id,correct\n,1\n", "line 2, column item_id: must not be empty"),
        ("item_id,correct\nq1\n", "line 2: it has 1 cells where the header has 2"),
        ("item_id,correct\nq1,1,2\n", "line 2: it has 3 cells where the header has 2"),
        ("item_id,correct,sample\nq1,1,-1\n", "line 2, column sample: must be a whole number"),
        ("item_id,correct,sample\nq1,1,²\n", "column sample: must be a whole number from 0"),
        ("item_id,correct,sample\nq1,1,99999999999999999999\n", "column sample: must be"),
        ('item_id,correct\n"q\n1",1\n', "column item_id: must be one line of printable"),
        ("item_id,correct\nq\x001,1\n", "line 2"),
        (f"item_id,correct\n{'q' * 201},1\n", f"must have {MOST_CHARACTERS} characters at most"),
        ('item_id,correct\nq1,1\n"q2,1\n', "line 3: it is not CSV (unexpected end of data)"),
        ('item_id,correct\n"q1"x,1\n', "line 2: it is not CSV"),
        (b"item_id,correct\nq1,1\nq\xff,1\n", "labels.csv, line 3: it is not UTF-8"),
        ("item_id,correct\n".encode("utf-16"), "line 1: it is not UTF-8; save it as UTF-8"),
        ("item_id,correct\nq1,1\nq1,0\n", "line 3: the same labeller has a label for that reply"),
    ],
)
def test_what_is_wrong_is_told_with_line_and_column(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    assert said in problem_of(tmp_path, content)


def test_the_first_wrong_lines_are_told_and_the_others_counted(tmp_path: Path) -> None:
    rows = "".join(f"q{number},perhaps\n" for number in range(12))

    problems = problem_of(tmp_path, "item_id,correct\n" + rows).splitlines()

    assert [one.partition(":")[0] for one in problems[:5]] == [
        f"labels.csv, line {line}, column correct" for line in range(2, 7)
    ]
    assert problems[5:] == ["labels.csv, and 7 more wrong lines."]


def test_a_file_beyond_all_bounds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "may have 16 MB at most" in problem_of(tmp_path, b"a" * (MOST_BYTES + 1))
    monkeypatch.setattr(module, "MOST_LABELS", 2)
    assert "line 4: there may be 2 labels" in problem_of(
        tmp_path, "item_id,correct\nq1,1\nq2,1\nq3,1\n"
    )


@pytest.mark.parametrize("name", ["nowhere.csv", ".", "labels.csv/below.csv"])
def test_a_file_that_is_not_there_is_told(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError, match=r"there is no such file; correct reliability.labels"):
        read_labels(tmp_path / name, Path(name))


def test_two_labellers_may_label_the_same_reply(tmp_path: Path) -> None:
    labels = read(tmp_path, "item_id,correct,labeller\nq1,1,Ada\nq1,0,Grace\n")

    assert [one.correct for one in labels] == [True, False]


def test_columns_that_are_not_used_are_told(tmp_path: Path) -> None:
    (tmp_path / SHOWN).write_text("item_id,correct,modle,note\nq1,1,a/b,hm\n")

    labels, warnings = read_labels(tmp_path / SHOWN, SHOWN)

    assert warnings == ["labels.csv: columns that are not used: 'modle', 'note'."]
    assert len(labels) == 1


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
@hypothesis_settings(max_examples=150, deadline=None)
def test_no_bytes_whatsoever_do_more_harm_than_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    folder = tmp_path_factory.mktemp("labels")
    for head in (b"", b"item_id,correct\n"):
        try:
            labels = read(folder, head + content)
        except DatasetError as error:
            assert str(error).startswith("labels.csv")
        else:
            assert all(one.item_id for one in labels)


NAMES = st.text(st.characters(categories=("L", "N", "P", "S")), min_size=1, max_size=20)


@given(st.dictionaries(NAMES, st.booleans(), max_size=20))
@hypothesis_settings(max_examples=50, deadline=None)
def test_every_label_that_was_written_is_read(
    tmp_path_factory: pytest.TempPathFactory, given: dict[str, bool]
) -> None:
    file = StringIO()
    csv.writer(file).writerows([["item_id", "correct"], *given.items()])

    labels = read(tmp_path_factory.mktemp("labels"), file.getvalue())

    assert {one.item_id: one.correct for one in labels} == given


def loaded(folder: Path, content: str, **changes: Any) -> Journal:
    (folder / SHOWN).write_text(content)
    settings = settings_in(folder, data_dir=".", reliability={"labels": "labels.csv"}, **changes)
    journal = Journal(settings.journal)
    load_labels(settings, journal)
    return journal


def test_without_the_setting_nothing_is_loaded(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)

    assert load_labels(settings, Journal(settings.journal)) == []
    assert not settings.journal.exists()


def test_the_same_labels_are_written_once_and_a_wrong_file_not_at_all(tmp_path: Path) -> None:
    journal = loaded(tmp_path, "item_id,correct\nq1,1\n")
    loaded(tmp_path, "correct,item_id\ntrue,q1\n")

    with pytest.raises(DatasetError):
        loaded(tmp_path, "item_id,correct\nq1,0\nq2,maybe\n")

    assert len(journal.files(LABELS)) == 1
    assert [one.correct for one in journal.read(LABELS)] == [True]


def rows(folder: Path, columns: str) -> list[tuple[Any, ...]]:
    warehouse = Warehouse(folder / "evals.duckdb", Journal(folder / "journal"))
    warehouse.publish()
    with warehouse.reading() as db:
        return db.sql(f"select {columns} from human_labels order by line").fetchall()


def test_the_file_that_was_loaded_last_stands_also_when_it_is_an_old_one(tmp_path: Path) -> None:
    one, other = "item_id,correct\nq1,1\n", "item_id,correct\nq1,0\n"

    seen = []
    for content in (one, other, one, "item_id,correct\n"):
        loaded(tmp_path, content)
        seen.append(rows(tmp_path, "item_id, correct"))

    assert seen == [[("q1", True)], [("q1", False)], [("q1", True)], []]


FITS: dict[str, tuple[int, int, list[str]]] = {
    "q1,1,,,,,": (4, 2, []),
    "q1,1,,demo/strong,,,": (2, 1, ["run-1 demo/strong", "run-2 demo/strong"]),
    "q1,1,sample,demo/strong,run-1,0,Ada": (1, 1, ["run-1 demo/strong"]),
    "q1,1,,,run-2,,": (2, 2, []),
    "q1,1,,demo/weak,run-2,,": (1, 1, ["run-2 demo/weak"]),
    "q1,1,,demo/strong,run,,": (2, 1, ["run-1 demo/strong", "run-2 demo/strong"]),
    "q1,1,other,,,,": (0, 0, []),
    "q1,1,,,,1,": (0, 0, []),
    "q1,1,,demo/judge,,,": (0, 0, []),
    "q9,1,,,,,": (0, 0, []),
    "failed,1,,,,,": (0, 0, []),
}


def test_a_label_is_about_replies_of_one_text_or_about_none(tmp_path: Path) -> None:
    plan = [("sample", "q1"), ("sample", "failed")]
    records = [
        record
        for model, answer in (("demo/strong", "42"), ("demo/weak", "41"))
        for of in ({"run_id": "run-1", "model": model}, {"run_id": "run-2", "model": model})
        for record in (
            a_run(plan=plan, **of),
            a_prediction("q1", answer=answer, prediction_id=" ".join(of.values()), **of),
            a_prediction("failed", outcome="timeout", answer=None, **of),
        )
    ]
    a_journal(tmp_path, *records)

    loaded(tmp_path, ALL_COLUMNS + "".join(f"{row}\n" for row in FITS))

    assert rows(tmp_path, "replies, answers, prediction_ids") == list(FITS.values())
