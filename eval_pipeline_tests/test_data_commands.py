"""`evals query` and `evals export`: any question in SQL, and all tables as files."""

import csv
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import duckdb
import pytest
from pydantic_core import SchemaError

from eval_pipeline.cli.main import main
from eval_pipeline.cli.output import print_json
from eval_pipeline.journal import Journal
from eval_pipeline.results.user_query import MOST_ROWS
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline_tests.boards import EXAM, graded, scores_of, taken
from eval_pipeline_tests.builders import a_journal, settings_in
from eval_pipeline_tests.project import BIN, call, environment
from eval_pipeline_tests.terminal import CTRL_C, in_terminal

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


WRITING = [
    "copy (select 'written') to '{out}/x.csv'",
    "attach '{out}/x.duckdb'",
    "install '{out}/x.duckdb_extension'",
    "load '{out}/x.duckdb_extension'",
    "set temp_directory = '{out}/x'",
    "create temp table x as select 1",
    "create table x as pivot runs on model using count(*)",
    "copy (pivot runs on model using count(*)) to '{out}/x.csv'",
    "export database '{out}/x'",
    "from enable_logging(storage='file', storage_path='{out}/x')",
    "from enable_profiling(save_location='{out}/x.txt')",
]
AROUND = [
    "{sql}",
    "{sql}; pivot runs on model using count(*)",
    "pivot runs on model using count(*); {sql}",
    "{sql}; select 1",
    "select 1; {sql}",
    "{sql}; pivot runs on model using count(*); select 1",
    "pivot runs on model using count(*); {sql}; pivot runs on model using count(*)",
    "with p as (pivot runs on model using count(*)) from p; {sql}",
]


@pytest.mark.parametrize("writing", WRITING)
@pytest.mark.parametrize("around", AROUND)
def test_nothing_is_written_whatever_stands_around_it(
    project: Path, tmp_path: Path, writing: str, around: str
) -> None:
    asked = ask(project, around.format(sql=writing.format(out=tmp_path)))

    assert (asked.returncode, asked.stdout) == (2, "")
    assert "more than one statement" in asked.stderr or "only read here" in asked.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "sql",
    [
        "from query('from system.main.enable_' || 'profiling(save_location=''{out}/x.txt'')')",
        "pivot (from enable_profiling(save_location='{out}/x.txt')) on Success using count(*)",
        "pivot (from query('from enable_' || 'profiling(save_location=''{out}/x.txt'')')) "
        "on Success using count(*)",
    ],
)
def test_a_function_that_writes_is_found_where_it_hides(
    project: Path, tmp_path: Path, sql: str
) -> None:
    asked = ask(project, sql.format(out=tmp_path))

    assert asked.returncode == 2
    assert "could write" in asked.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_text_that_names_such_a_function_can_be_asked_for(project: Path) -> None:
    asked = ask(project, "select count(*) as n from runs where model <> 'enable_logging'")

    assert asked.stdout.split() == ["n", "3"]


def test_a_query_loads_no_code_and_reads_files_of_the_machine(
    project: Path, tmp_path: Path
) -> None:
    (tmp_path / "mine.json").write_text('{"a": 1}\n')
    duckdb.sql("select 2 as a").write_parquet(str(tmp_path / "mine.parquet"))

    refused = ask(project, "from read_csv('https://127.0.0.1:9/x.csv')")
    files = f"from '{tmp_path}/mine.json' union all from '{tmp_path}/mine.parquet' order by a"

    assert refused.returncode == 2
    assert refused.stderr == (
        "That needs DuckDB's extension httpfs, and extensions are not loaded here: of what is not "
        "in the tables, only local files can be read.\n"
    )
    assert ask(project, files).stdout.split() == ["a", "1", "2"]


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
        ("-o /dev/fd/1 -f csv", "/dev/fd/1 is no file"),
        ("-o /proc/self/fd/1 -f csv", "/proc/self/fd/1 is no file"),
        ("-o /dev/../dev/stdout -f csv", "is no file"),
        ("-o /dev/shm/x.csv", "is no file"),
    ],
)
def test_what_can_not_be_written_there_is_refused(project: Path, options: str, words: str) -> None:
    asked = ask(project, "from runs", options)

    assert asked.returncode == 2
    assert words in asked.stderr


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_stdout_by_name_is_stdout(project: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "all.txt"
    out.write_text("before\n")
    with out.open("a") as file:
        words = [str(BIN / "evals"), "query", "select 1 as a", "-o", name]
        subprocess.run(words, cwd=project, env=environment(), stdout=file, check=True)

    assert out.read_text() == "before\na\n1\n"
    assert list(tmp_path.iterdir()) == [out]


def test_a_link_to_stdout_is_no_file(project: Path, tmp_path: Path) -> None:
    (tmp_path / "link.csv").symlink_to("/dev/stdout")
    (tmp_path / "round.csv").symlink_to("round.csv")

    for name in ("link.csv", "round.csv"):
        asked = ask(project, "from runs", f"-o {tmp_path / name}")
        assert (asked.returncode, "is no file" in asked.stderr) == (2, True)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o400, 0o666])
def test_a_file_that_is_replaced_keeps_its_mode(project: Path, tmp_path: Path, mode: int) -> None:
    path, folder = tmp_path / "kept.csv", tmp_path / "all"
    folder.mkdir()
    for one in (path, folder / "runs.csv"):
        one.write_text("older")
        one.chmod(mode)

    assert ask(project, "select 1 as a", f"-o {path}").returncode == 0
    assert call(project, f"evals export {folder} -f csv --force").returncode == 0

    assert path.read_text() == "a\n1\n"
    assert path.stat().st_mode & 0o777 == mode
    assert (folder / "runs.csv").stat().st_mode & 0o777 == mode


def test_what_a_killed_query_left_beside_the_file_goes_with_the_next(
    project: Path, tmp_path: Path
) -> None:
    path, other = tmp_path / "big.csv", tmp_path / ".big.csv.mine"
    other.write_text("mine")
    words = [str(BIN / "evals"), "query", "from range(100000000000)", "-o", str(path)]
    with subprocess.Popen(words, cwd=project, env=environment()) as process:
        until = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        process.kill()
    assert len(list(tmp_path.iterdir())) == 2

    assert ask(project, "from runs", f"-o {path}").returncode == 0

    assert sorted(tmp_path.iterdir()) == [other, path]


@pytest.mark.parametrize(("form", "second"), [("csv", "0"), ("jsonl", '{"range":1}')])
def test_rows_go_into_a_pipe_while_they_come(project: Path, form: str, second: str) -> None:
    words = [str(BIN / "evals"), "query", "from range(100000000000)", "-f", form]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=project, env=environment(), stdout=pipe, stderr=pipe, text=True
    ) as process:
        assert process.stdout and process.stderr
        lines = [process.stdout.readline() for _ in range(2)]
        process.stdout.close()
        assert process.wait(60) == 1
        assert process.stderr.read() == ""

    assert lines[1].strip() == second


ENDLESS = "from range(100000000000) order by random()"


def _wait_for_work(pid: int) -> None:
    """Until the process has threads, which are DuckDB's, and a moment longer."""
    until = time.monotonic() + 60
    while len(list(Path(f"/proc/{pid}/task").iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.5)


def test_a_table_that_takes_forever_can_be_interrupted(project: Path) -> None:
    with in_terminal(project, f'evals query "{ENDLESS}"') as terminal:
        _wait_for_work(terminal.pid)
        terminal.press(CTRL_C)
        assert terminal.end() == 130

    assert "Traceback" not in terminal.everything


@pytest.mark.parametrize(
    ("sql", "options", "times"),
    [
        (ENDLESS, "-f csv", 1),
        (ENDLESS, "-f json", 1),
        (ENDLESS, "-f json", 3),
        (ENDLESS, "-o mine.csv", 1),
        # Deep in one function DuckDB does not hear that it is to end.
        ("select levenshtein(repeat('a', 300000), repeat('b', 300000))", "-f table", 1),
    ],
)
def test_whatever_is_asked_can_be_interrupted(
    project: Path, sql: str, options: str, times: int
) -> None:
    words = [str(BIN / "evals"), "query", sql, *options.split()]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        words, cwd=project, env=environment(), stdout=pipe, stderr=pipe, text=True
    ) as process:
        _wait_for_work(process.pid)
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.01)
        out, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, "")
    assert out in ("", "range\n")
    assert not list(project.glob("*mine*"))


@pytest.mark.parametrize("after_s", [0, 0.1, 0.2, 0.3])
def test_a_command_that_is_still_loading_can_be_interrupted(project: Path, after_s: float) -> None:
    words = [str(BIN / "evals"), "query", ENDLESS]
    with subprocess.Popen(words, cwd=project, env=environment(), stderr=subprocess.PIPE) as process:
        _wait_for_library("pydantic_core", process.pid)
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)

    assert (process.returncode, err) == (130, b"")


def _wait_for_library(name: str, pid: int) -> None:
    """Until the process has begun to load it."""
    until = time.monotonic() + 60
    while name not in Path(f"/proc/{pid}/maps").read_text() and time.monotonic() < until:
        time.sleep(0.005)


def test_an_interruption_that_pydantic_tells_in_its_own_words_is_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(**_: object) -> None:
        raise SchemaError('Error building "enum" validator: KeyboardInterrupt: ')

    monkeypatch.setattr("eval_pipeline.cli.main.app", interrupted)

    with pytest.raises(SystemExit) as ended:
        main()

    assert ended.value.code == 130


def test_json_shows_no_character_that_a_terminal_would_obey(
    capsys: pytest.CaptureFixture[str],
) -> None:
    every = [chr(code) for code in range(sys.maxunicode + 1)]
    hostile = {"text": "".join(every[:0xD800] + every[0xE000:]), "\u202ekey": "\ud800 alone"}

    print_json(hostile)

    shown = capsys.readouterr().out
    assert json.loads(shown) == hostile
    assert {one for one in shown if not one.isprintable()} == {"\n"}
    assert "\\u202ekey" in shown
    assert "\\udb40\\udc01" in shown


@pytest.mark.parametrize("form", ["json", "jsonl"])
def test_json_of_a_query_says_the_same_at_a_terminal(project: Path, form: str) -> None:
    sql = "select 'a' || chr(155) || chr(8238) || chr(917505) as a"
    with in_terminal(project, f'evals query -f {form} "{sql}"') as terminal:
        assert terminal.end() == 0

    assert '"a\\u009b\\u202e\\udb40\\udc01"' in terminal.everything


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


def test_an_export_into_a_file_is_wrong_use(project: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("notes")

    refused = [call(project, f"evals export {tmp_path / name}") for name in ("mine", "mine/new")]

    assert [one.returncode for one in refused] == [2, 2]
    assert refused[0].stderr == (f"{tmp_path}/mine is no folder: name one that is, or a new one.\n")


def test_an_export_that_finds_a_folder_in_its_way_replaces_nothing(
    project: Path, tmp_path: Path
) -> None:
    older = tmp_path / "attempts.csv"
    older.write_text("older")
    (tmp_path / "runs.csv").mkdir()

    asked = call(project, f"evals export {tmp_path} -f csv --force")

    assert asked.returncode == 2
    assert "runs.csv is a folder" in asked.stderr
    assert older.read_text() == "older"
    assert {path.name for path in tmp_path.iterdir()} == {"attempts.csv", "runs.csv"}


def test_an_export_that_fails_leaves_no_file_under_its_name(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> str:
        raise KeyboardInterrupt

    dead = tmp_path / ".exporting-999999999"
    dead.mkdir()
    with monkeypatch.context() as own:
        own.setattr("eval_pipeline.results.export.schema_page", fail)
        assert call(project, f"evals export {tmp_path}").returncode != 0

    assert list(tmp_path.iterdir()) == []
    assert call(project, f"evals export {tmp_path}").returncode == 0


def test_an_export_of_no_run_says_which_there_are(project: Path, tmp_path: Path) -> None:
    asked = call(project, f"evals export {tmp_path / 'new'} --run cccc")

    assert asked.returncode == 2
    assert "There is no run 'cccc'; the latest are bbbb-2, aaaa-1." in asked.stderr
    assert not (tmp_path / "new").exists()
