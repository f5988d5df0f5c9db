"""`evals query` and `evals export`: any question in SQL, and all tables as files."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import duckdb
import pytest

from eval_pipeline.journal import Journal
from eval_pipeline.querying import MOST_ROWS
from eval_pipeline.settings import Settings
from eval_pipeline.warehouse import Warehouse
from eval_pipeline_tests.boards import EXAM, graded, scores_of, taken
from eval_pipeline_tests.builders import a_journal, settings_in
from eval_pipeline_tests.project import BIN, call, environment
from eval_pipeline_tests.terminal import in_terminal

EVIL = "'red: ' || chr(27) || '[31m [bold]x[/bold]'"
HOLD = "import duckdb, sys; db = duckdb.connect(sys.argv[1]); print('open', flush=True); input()"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models took an exam in one launch, and one of them did so again."""
    folder = tmp_path_factory.mktemp("project")
    settings = settings_in(folder)
    runs = [
        taken("demo/strong", "aaaa-1", hour=1),
        taken("demo/weak", "aaaa-1", hour=1),
        taken("demo/weak", "bbbb-2", hour=2),
    ]
    records = [
        record for seed, run in enumerate(runs) for record in graded(run, scores_of(0.5, seed=seed))
    ]
    a_journal(settings.data, *records, benchmark=EXAM)
    Warehouse(settings.database, Journal(settings.journal)).publish()
    return folder


def ask(project: Path, sql: str, options: str = "") -> subprocess.CompletedProcess[str]:
    with pytest.MonkeyPatch.context() as own:
        own.setattr(sys, "stdin", StringIO(sql))
        return call(project, f"evals query - {options}")


def test_in_a_pipe_a_result_is_csv_with_structures_as_json(project: Path) -> None:
    asked = ask(
        project,
        "select model, count(*) as n, list(distinct run_id order by run_id) as ids, "
        "{'a': 1} as s, null as none, '' as empty from runs group by model order by model",
    )

    assert asked.returncode == 0, asked.stderr
    rows = list(csv.DictReader(StringIO(asked.stdout)))
    assert [row["n"] for row in rows] == ["1", "2"]
    assert [json.loads(row["ids"]) for row in rows] == [["aaaa-1"], ["aaaa-1", "bbbb-2"]]
    assert json.loads(rows[0]["s"]) == {"a": 1}
    assert asked.stdout.splitlines()[1].endswith(',,""')


@pytest.mark.parametrize("options", ["--json", "--format json"])
def test_json_is_one_document_by_column(project: Path, options: str) -> None:
    sql = "select run_id, opened_at, plan_filter, 'nan'::double as x, [1.5] as l from runs limit 1"

    (row,) = json.loads(ask(project, sql, options).stdout)

    assert (row["run_id"], row["x"], row["l"]) == ("aaaa-1", None, [1.5])
    assert row["opened_at"] == "2025-01-01T13:00:00.000000"
    assert row["plan_filter"]["max_samples"] is None
    assert json.loads(ask(project, "from runs where false", options).stdout) == []


def test_json_lines_are_one_object_per_row(project: Path) -> None:
    asked = ask(project, "select item_id from predictions order by all", "-f jsonl")

    rows = [json.loads(line) for line in asked.stdout.splitlines()]
    assert len(rows) == 120
    assert rows[0] == {"item_id": "q00"}


@pytest.mark.parametrize("suffix", ["csv", "json", "jsonl", "ndjson", "parquet"])
def test_the_suffix_of_the_file_says_the_format(project: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"runs.{suffix}"
    path.write_text("something older")

    asked = ask(project, "from runs order by run_id, model", f"-o {path}")

    assert (asked.returncode, asked.stdout) == (0, "")
    found = duckdb.sql(f"select run_id, model from '{path}'").fetchall()
    assert found == [
        ("aaaa-1", "demo/strong"),
        ("aaaa-1", "demo/weak"),
        ("bbbb-2", "demo/weak"),
    ]
    assert list(tmp_path.iterdir()) == [path]


def test_a_query_that_fails_half_way_leaves_the_file_as_it_was(
    project: Path, tmp_path: Path
) -> None:
    path = tmp_path / "kept.csv"
    path.write_text("older\n")
    sql = "select if(i < 900000, i, error('too far')) from range(1000000) t(i)"

    asked = ask(project, sql, f"-o {path}")

    assert asked.returncode == 2
    assert "too far" in asked.stderr
    assert path.read_text() == "older\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("select nothing from runs", 'Referenced column "nothing" not found'),
        ("selec", "LINE 1: selec"),
        ("from project", "Table with name project does not exist"),
        ("select error('boom')", "boom"),
        ("select 1; select 2", "more than one statement"),
        ("insert into runs from runs", "type INSERT"),
        ("delete from runs", "type DELETE"),
        ("create table mine as from runs", "type CREATE"),
        ("copy runs to 'mine.csv'", "type COPY"),
        ("attach 'mine.duckdb'", "type ATTACH"),
        ("", "There is no SQL"),
        ("-- nothing", "There is no SQL"),
    ],
)
def test_what_is_wrong_with_the_sql_is_said_in_words(project: Path, sql: str, words: str) -> None:
    asked = ask(project, sql)

    assert asked.returncode == 2
    assert asked.stdout == ""
    assert words in asked.stderr
    assert "Traceback" not in asked.stderr
    assert not list(project.glob("mine*"))


@pytest.mark.parametrize(
    ("sql", "first"),
    [
        ("show tables", "attempts"),
        ("describe runs", "run_id,VARCHAR,NO,PRI,,"),
        ("pragma table_info('runs');", "0,run_id,VARCHAR,true,,true"),
        ("with r as (from runs) select count(*) from r -- that is all", "3"),
        ("pivot runs on model using count(*) group by experiment;", "default,1,2"),
        ("select 1 as a, 2 as a", "1,2"),
        ("select i from range(100000) t(i) order by i desc", "99999"),
    ],
)
def test_whatever_only_reads_can_be_asked(project: Path, sql: str, first: str) -> None:
    asked = ask(project, sql)

    assert asked.returncode == 0, asked.stderr
    assert asked.stdout.splitlines()[1] == first


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--json --format csv", "two formats"),
        ("-o result.txt", "say the --format"),
        ("-o result.csv -f table", "A table is for the terminal"),
        ("-o missing/result.csv", "There is no folder missing"),
        ("-o /dev/null -f csv", "/dev/null is no file"),
    ],
)
def test_what_can_not_be_written_there_is_refused(project: Path, options: str, words: str) -> None:
    asked = ask(project, "from runs", options)

    assert asked.returncode == 2
    assert words in asked.stderr


def test_a_table_ends_where_nobody_reads_on(project: Path) -> None:
    asked = ask(project, f"select range as number from range({MOST_ROWS + 50})", "-f table")

    lines = [line.strip() for line in asked.stdout.splitlines()]
    assert str(MOST_ROWS - 1) in lines
    assert str(MOST_ROWS) not in lines
    assert lines[-1] == "… 50 more rows. All of them: --format csv, or -o with a file."


def test_a_terminal_obeys_nothing_that_stands_in_a_cell(project: Path) -> None:
    with in_terminal(project, f'evals query "select {EVIL} as reply, 12 as n"') as table:
        assert table.end() == 0
    with in_terminal(project, f'evals query -f csv "select {EVIL} as reply, 12 as n"') as text:
        assert text.end() == 0

    for shown in (table.everything, text.everything):
        assert "red: \ufffd[31m [bold]x[/bold]" in shown
    assert "reply" in table.everything
    assert "," not in table.everything


def test_rows_too_wide_for_the_terminal_stand_one_below_the_other(project: Path) -> None:
    with in_terminal(project, 'evals query "from predictions order by all limit 2"') as shown:
        assert shown.end() == 0

    assert "row 2" in shown.everything
    assert any(line.split() == ["item_id", "q01"] for line in shown.everything.splitlines())


def test_parquet_goes_into_a_pipe_and_not_to_a_terminal(project: Path, tmp_path: Path) -> None:
    words = [str(BIN / "evals"), "query", "from runs", "--format", "parquet"]
    piped = subprocess.run(words, cwd=project, env=environment(), capture_output=True, check=True)
    (tmp_path / "piped.parquet").write_bytes(piped.stdout)
    with in_terminal(project, 'evals query "from runs" -f parquet') as shown:
        assert shown.end() == 2

    assert duckdb.sql(f"select count(*) from '{tmp_path}/piped.parquet'").fetchall() == [(3,)]
    assert "Parquet is nothing to read" in shown.everything


@pytest.fixture
def somebody(project: Path) -> Iterator[None]:
    """Who has the file open to write, in a shell of theirs."""
    database = Settings.from_env({"EVALS_SETTINGS": str(project / "eval_pipeline.toml")}).database
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", HOLD, str(database)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout and process.stdout.readline() == "open\n"
        yield
        process.communicate("\n")


@pytest.mark.usefixtures("somebody")
def test_a_query_works_while_somebody_has_the_file_open_to_write(project: Path) -> None:
    asked = ask(project, "select count(*) from runs")

    assert asked.stdout.split() == ["count_star()", "3"]


def files_of(folder: Path, form: str) -> dict[str, int]:
    return {
        path.stem: duckdb.sql(f"select count(*) from '{path}'").fetchall()[0][0]
        for path in sorted(folder.glob(f"*.{form}"))
    }


def test_an_export_has_a_file_for_every_table_and_says_what_the_columns_mean(
    project: Path, tmp_path: Path
) -> None:
    out = tmp_path / "new" / "out"

    asked = call(project, f"evals export {out}")

    assert asked.returncode == 0, asked.stderr
    rows = files_of(out, "parquet")
    described = (out / "schema.md").read_text("utf-8")
    tables = {line[3:] for line in described.splitlines() if line.startswith("## ")}
    assert set(rows) == tables - {"published"}
    assert (rows["runs"], rows["predictions"], rows["judged"], rows["items"]) == (3, 120, 120, 40)
    assert rows["leaderboard"] == 2
    assert f"      120 rows  {out}/judged.parquet" in asked.stdout.splitlines()
    assert {path.suffix for path in out.iterdir()} == {".parquet", ".md"}


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_an_export_of_runs_has_only_what_belongs_to_them(
    project: Path, tmp_path: Path, form: str
) -> None:
    asked = call(
        project,
        f"evals export {tmp_path} -f {form} --run demo/strong@aaaa --run bbbb --json",
    )

    told = {Path(one["file"]).stem: one["rows"] for one in json.loads(asked.stdout)}
    empty = {name for name, rows in told.items() if rows == 0}
    assert {name: n for name, n in files_of(tmp_path, form).items() if name not in empty} == {
        name: rows for name, rows in told.items() if name not in empty
    }
    assert (told["runs"], told["predictions"], told["plans"], told["items"]) == (2, 80, 80, 40)
    assert (told["benchmark_versions"], told["leaderboard"]) == (1, 2)
    assert "comparisons" not in told
    kept = duckdb.sql(f"select distinct run_id, model from '{tmp_path}/judged.{form}' order by all")
    assert kept.fetchall() == [("aaaa-1", "demo/strong"), ("bbbb-2", "demo/weak")]


def test_an_export_replaces_files_only_if_told_to(project: Path, tmp_path: Path) -> None:
    other, older = tmp_path / "other.txt", tmp_path / "runs.csv"
    other.write_text("mine")
    older.write_text("older")

    refused = call(project, f"evals export {tmp_path} -f csv")
    assert refused.returncode == 2
    assert "--force" in refused.stderr
    assert older.read_text() == "older"

    forced = call(project, f"evals export {tmp_path} -f csv --force")
    assert forced.returncode == 0, forced.stderr
    assert older.read_text().startswith("run_id,")
    assert other.read_text() == "mine"


def test_an_export_that_fails_leaves_no_file_under_its_name(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise KeyboardInterrupt

    dead = tmp_path / ".exporting-999999999"
    dead.mkdir()
    with monkeypatch.context() as own:
        own.setattr("eval_pipeline.exporting.schema_page", fail)
        assert call(project, f"evals export {tmp_path}").returncode != 0

    assert list(tmp_path.iterdir()) == []
    assert call(project, f"evals export {tmp_path}").returncode == 0


def test_an_export_of_no_run_says_which_there_are(project: Path, tmp_path: Path) -> None:
    asked = call(project, f"evals export {tmp_path / 'new'} --run cccc")

    assert asked.returncode == 2
    assert "There is no run 'cccc'; the latest are bbbb-2, aaaa-1." in asked.stderr
    assert not (tmp_path / "new").exists()
