"""The commands of the README, exactly as written, in a folder of their own."""

from pathlib import Path

import duckdb
import pytest

from eval_pipeline_tests.project import a_project, call, run

MATERIALIZE = "dagster asset materialize --select"


def counts(project: Path, table: str) -> int:
    with duckdb.connect(str(project / "data" / "evals.duckdb"), read_only=True) as db:
        (found,) = db.sql(f"select count(*) from {table}").fetchall()
    return int(found[0])


def test_the_dagster_commands_work_as_written_and_remember_each_other(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=10)

    commands = [
        f"{MATERIALIZE} model_catalog",
        f"{MATERIALIZE} predictions --partition demo/strong",
        f"{MATERIALIZE} judged",
        f"{MATERIALIZE} metrics",
    ]
    for command in commands:
        done = run(project, command)
        assert done.returncode == 0, done.stderr

    assert counts(project, "predictions") == counts(project, "judged") == 10
    assert counts(project, "metrics where slice = 'all' and complete") == 1


def test_an_unknown_partition_is_answered_with_what_to_do(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=5)

    done = run(project, f"{MATERIALIZE} predictions --partition demo/strng")

    assert done.returncode != 0
    assert "demo/strng is no partition" in done.stderr
    assert "dagster asset materialize --select model_catalog" in done.stderr


def test_evals_run_and_leaderboard_print_three_simulated_models(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=40)

    ran = run(project, "evals run", {"MAX_CONCURRENT_MODELS": "2"})
    shown = run(project, "evals leaderboard")

    assert ran.returncode == 0, ran.stderr
    assert "SIMULATED" in shown.stdout
    rows = [line.split() for line in shown.stdout.splitlines()]
    places = [row[:2] for row in rows if row and row[0].isdigit() and "demo/" in row[1]]
    assert places == [["1", "demo/strong"], ["2", "demo/average"], ["3", "demo/weak"]]


@pytest.mark.slow
def test_a_filtered_run_is_told_apart_from_the_leaderboard(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=5)

    call(project, "evals run", {"MODELS": "demo/weak", "MAX_SAMPLES": "2"})
    shown = call(project, "evals leaderboard")

    assert "No run of the published benchmark version is complete yet" in shown.stdout
    assert "Not on it: demo/weak" in shown.stdout
    assert "only a part was asked" in shown.stdout


@pytest.mark.parametrize(
    ("variables", "sentence"),
    [
        ({"JUDGE_MODEL": "demo/nobody"}, "The model demo/nobody is in no gateway's list."),
        ({"MODELS": "demo/strng"}, "No model matches 'demo/strng'; closest: demo/strong"),
        ({"MAX_SAMPLES": "many"}, "environment variable MAX_SAMPLES: "),
        ({"EVALS_SETTINGS": "nowhere.toml"}, "nowhere.toml: there is no such file"),
        ({"TEST_FILTER": "^none$"}, "No item passes the filter"),
    ],
)
def test_what_a_user_does_wrong_is_a_sentence_and_no_stack_trace(
    tmp_path: Path, variables: dict[str, str], sentence: str
) -> None:
    project = a_project(tmp_path, questions=5)

    done = call(project, "evals run", variables)

    assert done.returncode in (1, 2)
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_a_second_run_asks_nobody_unless_it_is_to_be_fresh(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=5)
    one = {"MODELS": "demo/weak", "MAX_SAMPLES": "3"}
    call(project, "evals run", one)

    again = call(project, "evals run", one)
    fresh = call(project, "evals run --fresh", one)

    assert "3 of 3 items, 0 to ask" in again.stderr
    assert "0 of 3 items, 3 to ask" in fresh.stderr
    assert counts(project, "runs") == 2


@pytest.mark.slow
def test_what_failed_is_told_with_an_example_and_an_exit_code(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=5)
    settings = (project / "eval_pipeline.toml").read_text()
    wrong = '[overrides."demo/weak"]\ntemperature = true\n'
    (project / "eval_pipeline.toml").write_text(f"{settings}\n{wrong}")

    done = call(project, "evals run", {"MAX_SAMPLES": "2"})

    assert done.returncode == 1
    assert "demo/weak: 2 of 2 asked (2 bad_request), 0.0000 USD; for example" in done.stderr
    assert "The check every_planned_item_is_predicted failed: 2 planned replies are missing: " in (
        done.stderr
    )
    assert counts(project, "judged") == 4


@pytest.mark.slow
def test_settings_in_another_folder_keep_everything_there(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").mkdir()
    a_project(tmp_path / "project", questions=5)
    (tmp_path / "project" / "dagster.yaml").unlink()

    settings = {"EVALS_SETTINGS": "../project/eval_pipeline.toml", "MAX_SAMPLES": "1"}
    done = call(tmp_path / "elsewhere", "evals run", settings)

    assert done.returncode == 0, done.stderr
    assert "telemetry" not in done.stderr
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "project" / "data" / "dagster" / "history").is_dir()


def test_a_missing_question_file_is_a_sentence(tmp_path: Path) -> None:
    project = a_project(tmp_path)
    (project / "data" / "sample" / "questions.jsonl").unlink()

    done = call(project, "evals run")

    assert done.returncode == 1
    assert "data/sample/questions.jsonl" in done.stderr
    assert "suites.sample.path" in done.stderr
    assert "Traceback" not in done.stderr


def test_rebuild_makes_the_file_anew(tmp_path: Path) -> None:
    project = a_project(tmp_path, questions=5)
    call(project, "evals run", {"MODELS": "demo/weak", "MAX_SAMPLES": "3"})
    before = counts(project, "judged")
    (project / "data" / "evals.duckdb").unlink()

    done = call(project, "evals rebuild")

    assert done.returncode == 0, done.stderr
    assert counts(project, "judged") == before == 3


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "can not be read: No such file or directory."),
        ('{"latency": 1}', "latency: Extra inputs are not permitted."),
        ("{", "Invalid JSON"),
    ],
)
def test_wrong_faults_for_the_demo_server_are_a_sentence(
    tmp_path: Path, content: str | None, sentence: str
) -> None:
    project = a_project(tmp_path, questions=5)
    if content is not None:
        (project / "faults.json").write_text(content)

    done = call(project, "evals demo-server --faults faults.json")

    assert done.returncode == 2
    assert sentence in done.stderr
