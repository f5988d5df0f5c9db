"""Every file format gives the same rows, and a file that can not be read says why."""

import csv
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path

import duckdb
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.errors import DatasetError
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.settings.sections import Suite
from eval_pipeline.suites.exam.dataset import load_questions
from eval_pipeline.suites.exam.files import BadRow, Row, Source, read_rows
from eval_pipeline_tests.test_exam_dataset import a_row, some_settings

HEADER = "id,question,answer,answer_type,category\n"


def a_file(folder: Path, name: str, content: str | bytes) -> Source:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return Source(path, name, "suites.hle.path")


def write_jsonl(path: Path, rows: Sequence[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")


def write_csv(path: Path, rows: Sequence[dict[str, str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def write_parquet(path: Path, rows: Sequence[dict[str, str]]) -> None:
    columns = list(rows[0])
    with duckdb.connect(":memory:") as connection:
        typed = ", ".join(f'"{name}" varchar' for name in columns)
        connection.execute(f"create table t ({typed})")
        marks = ", ".join("?" for _ in columns)
        connection.executemany(
            f"insert into t values ({marks})", [[r[c] for c in columns] for r in rows]
        )
        connection.execute(f"copy t to '{path}' (format parquet)")


def a_shard(folder: Path, *ids: str) -> bytes:
    path = folder / "shard.parquet"
    fields = {"question": "Q", "answer": "A", "answer_type": "exactMatch", "category": "C"}
    write_parquet(path, [{"id": name} | fields for name in ids])
    content = path.read_bytes()
    path.unlink()
    return content


def load(folder: Path, name: str, cluster: str | None = None) -> tuple[ExamQuestion, ...]:
    suite = Suite(name="hle", path=Path(name), cluster=cluster)
    return tuple(load_questions(suite, some_settings(folder, suite)))


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
filled = text.filter(lambda value: bool(value.strip()))
rows = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.from_regex(r"[a-z0-9/.]{1,20}", fullmatch=True),
            "question": filled,
            "answer": filled,
            "answer_type": st.sampled_from(["exactMatch", "multipleChoice"]),
            "category": filled,
            "image": st.just(""),
            "rationale": text,
            "raw_subject": text,
        }
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda row: row["id"],
)


@hypothesis_settings(max_examples=40, deadline=None, database=None)
@given(rows=rows)
def test_all_formats_of_the_same_rows_load_to_the_same_questions(
    rows: list[dict[str, str]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_jsonl(folder / "exam.jsonl", rows)
        write_csv(folder / "exam.csv", rows)
        write_parquet(folder / "exam.parquet", rows)

        loaded = [load(folder, f"exam.{kind}") for kind in ("jsonl", "csv", "parquet")]

    assert [question.id for question in loaded[0]] == [row["id"] for row in rows]
    assert loaded[0] == loaded[1] == loaded[2]


def test_blank_lines_are_skipped_and_rows_keep_their_line_number(tmp_path: Path) -> None:
    source = a_file(tmp_path, "exam.ndjson", '\n{"id": "a"}\r\n  \n{"id": "b"}')

    found = list(read_rows(source))

    assert found == [Row(2, {"id": "a"}), Row(4, {"id": "b"})]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": ', "line 2 is not valid JSON (Expecting value, column 8)"),
        (b"[1, 2]", "line 2 is not a JSON object"),
        (b'{"id": "\xff"}', "line 2 is not valid UTF-8"),
        (b"[" * 200_000, "line 2 is nested too deeply"),
    ],
)
def test_a_broken_line_is_told_with_its_number(tmp_path: Path, line: bytes, reason: str) -> None:
    source = a_file(tmp_path, "exam.jsonl", b'{"id": "a"}\n' + line + b"\n")

    found = list(read_rows(source))

    assert found[1] == BadRow(2, reason)


def test_a_broken_line_is_one_problem_among_the_others(tmp_path: Path) -> None:
    a_file(tmp_path, "exam.jsonl", "{\n" + json.dumps(a_row(answer="")) + "\n")

    with pytest.raises(DatasetError) as raised:
        load(tmp_path, "exam.jsonl")

    first, second = str(raised.value).splitlines()
    assert first.startswith("exam.jsonl: row 1: line 1 is not valid JSON")
    assert second == "exam.jsonl: row 2 (id 'q1'): answer is missing or blank."


@pytest.mark.parametrize("name", ["exam.jsonl", "exam.csv"])
def test_a_byte_order_mark_is_no_part_of_the_data(tmp_path: Path, name: str) -> None:
    content = json.dumps(a_row()) if name.endswith("jsonl") else HEADER + "q1,Q,A,exactMatch,C\n"
    a_file(tmp_path, name, b"\xef\xbb\xbf" + content.encode())

    (question,) = load(tmp_path, name)

    assert question.id == "q1"


def test_numbers_in_a_csv_stay_as_written(tmp_path: Path) -> None:
    a_file(tmp_path, "exam.csv", HEADER + "007,Q,1.50,exactMatch,C\n\n8,Q,+3,exactMatch,C\n")

    questions = load(tmp_path, "exam.csv")

    assert [(question.id, question.answer) for question in questions] == [
        ("007", "1.50"),
        ("8", "+3"),
    ]


def test_numbers_in_a_parquet_file_become_text(tmp_path: Path) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            "copy (select 7 as id, 'Q' as question, 1.50::decimal(4,2) as answer, "
            "'exactMatch' as answer_type, 'C' as category, 'nan'::double as image) "
            f"to '{tmp_path / 'exam.parquet'}'"
        )

    (question,) = load(tmp_path, "exam.parquet")

    assert (question.id, question.answer, question.image) == ("7", "1.50", None)


def test_a_large_cell_of_a_csv_is_read(tmp_path: Path) -> None:
    a_file(tmp_path, "exam.csv", HEADER + f"q1,{'x' * 1_000_000},A,exactMatch,C\n")

    (question,) = load(tmp_path, "exam.csv")

    assert len(question.question) == 1_000_000


def test_a_large_parquet_file_is_read_in_slices_and_in_order(tmp_path: Path) -> None:
    with duckdb.connect(":memory:") as connection:
        connection.execute(
            "copy (select n::varchar as id, 'Q' as question, 'A' as answer, "
            "'exactMatch' as answer_type, 'C' as category from range(25_000) t(n)) "
            f"to '{tmp_path / 'exam.parquet'}' (format parquet, row_group_size 3000)"
        )

    found = list(read_rows(Source(tmp_path / "exam.parquet", "exam.parquet", "suites.hle.path")))

    assert [row.number for row in found] == list(range(1, 25_001))
    assert all(isinstance(row, Row) and row.values["id"] == str(row.number - 1) for row in found)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("exam.txt", "", "the file must end in .jsonl, .ndjson, .csv or .parquet"),
        ("exam.json", "", "the file must end in .jsonl, .ndjson, .csv or .parquet"),
        ("exam.csv", "id,question\nq1,Q\n", "lacks the column(s) answer, answer_type, category"),
        ("exam.csv", "id," + HEADER, "the column id is there more than once"),
        ("exam.csv", HEADER.encode() + b"q1,\xff\n", "the file is not valid UTF-8 after row 0"),
        ("exam.csv", HEADER + 'q1,"Q"x,A,exactMatch,C\n', "can not be parsed as CSV after row 0"),
        ("exam.csv", HEADER + 'q1,"Q', "can not be parsed as CSV after row 0"),
        ("exam.csv", HEADER + "q1,Q,A\n", "row 1: it has 3 cells where the header has 5"),
        ("exam.csv", HEADER, "the data set has no rows"),
        ("exam.csv", "", "the data set has no rows"),
        ("exam.jsonl", "\n\n", "the data set has no rows"),
        ("exam.parquet", "", "the file can not be parsed as Parquet"),
        ("exam.parquet", "PAR1 and then nothing", "the file can not be parsed as Parquet"),
    ],
)
def test_an_unusable_file_is_refused(
    tmp_path: Path, name: str, content: str | bytes, reason: str
) -> None:
    a_file(tmp_path, name, content)

    with pytest.raises(DatasetError) as raised:
        load(tmp_path, name)

    message = str(raised.value)
    assert message.startswith(f"{name}: ")
    assert reason in message
    assert str(tmp_path) not in message


def test_a_parquet_file_without_a_column_is_refused(tmp_path: Path) -> None:
    write_parquet(tmp_path / "exam.parquet", [{"id": "q1", "question": "Q"}])

    with pytest.raises(DatasetError, match=r"lacks the column\(s\) answer, answer_type, category"):
        load(tmp_path, "exam.parquet")


@pytest.mark.parametrize("name", ["no.jsonl", "no.csv", "no.parquet", "no/no.parquet"])
def test_a_missing_file_is_told_with_the_setting_that_names_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(DatasetError) as raised:
        load(tmp_path, name)

    assert str(raised.value) == f"{name}: there is no such file; correct suites.hle.path."


@pytest.mark.parametrize("name", ["folder.jsonl", "folder.csv", "folder.parquet"])
def test_a_folder_is_no_file_whatever_its_name(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()

    with pytest.raises(DatasetError, match=rf"{name}: there is no questions\.json in it"):
        load(tmp_path, name)


WRITERS = {"jsonl": write_jsonl, "csv": write_csv, "parquet": write_parquet}
A_ROW = {name: str(value) for name, value in a_row(image="").items()}


@pytest.mark.parametrize("kind", WRITERS)
@pytest.mark.parametrize(
    ("cluster", "found"),
    [(None, [None, None]), ("passage", ["p 1", "7"]), ("raw_subject", ["Arithmetic"] * 2)],
)
def test_a_column_that_the_suite_names_groups_its_items(
    tmp_path: Path, kind: str, cluster: str | None, found: list[str | None]
) -> None:
    rows = [A_ROW | {"passage": "p 1"}, A_ROW | {"id": "q2", "passage": "7"}]
    WRITERS[kind](tmp_path / f"exam.{kind}", rows)

    questions = load(tmp_path, f"exam.{kind}", cluster)

    assert [question.cluster for question in questions] == found


@pytest.mark.parametrize("kind", WRITERS)
def test_a_missing_cluster_column_is_told_by_its_name(tmp_path: Path, kind: str) -> None:
    WRITERS[kind](tmp_path / f"exam.{kind}", [A_ROW])

    with pytest.raises(DatasetError, match="passage, which the suite's `cluster` names"):
        load(tmp_path, f"exam.{kind}", "passage")


@pytest.mark.parametrize("kind", WRITERS)
def test_an_item_of_no_cluster_is_refused(tmp_path: Path, kind: str) -> None:
    rows = [A_ROW | {"the passage": "1"}, A_ROW | {"id": "q2", "the passage": " "}]
    WRITERS[kind](tmp_path / f"exam.{kind}", rows)

    with pytest.raises(DatasetError, match=r"row 2 \(id 'q2'\): the passage.* is missing or blank"):
        load(tmp_path, f"exam.{kind}", "the passage")


@pytest.mark.parametrize("cluster", ["a.b", 'the "passage"', "select"])
def test_a_column_of_a_parquet_file_may_have_any_name(tmp_path: Path, cluster: str) -> None:
    write_jsonl(tmp_path / "rows.json", [A_ROW | {cluster: "p 1"}])
    duckdb.read_json(str(tmp_path / "rows.json")).write_parquet(str(tmp_path / "exam.parquet"))

    (question,) = load(tmp_path, "exam.parquet", cluster)

    assert question.cluster == "p 1"
