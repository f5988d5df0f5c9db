"""Versions of the benchmark: which is published, what the leaderboard shows, what stays."""

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from eval_pipeline.cli.main import app
from eval_pipeline.errors import RunError
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, Journal
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline.suites.benchmark import (
    current,
    keep,
    load_benchmark,
    mint,
    minted,
)
from eval_pipeline_tests.builders import (
    a_journal,
    a_judgement,
    a_prediction,
    a_run,
    settings_in,
)
from eval_pipeline_tests.test_benchmark import write_questions


def state(warehouse: Warehouse, columns: str = "name, is_published, is_current") -> list[Any]:
    """Each version of the benchmark in the order in which they came."""
    with warehouse.reading() as db:
        found = db.sql(f"select {columns} from benchmark_versions order by first_loaded_at")
        return found.fetchall()


def evaluated(settings: Settings, run_id: str) -> Warehouse:
    """The results with a run of the benchmark as it is, in which every answer is right."""
    journal = Journal(settings.journal)
    benchmark = current(journal, settings)
    version = benchmark.version.benchmark_version
    run = a_run(run_id, plan=benchmark.items, benchmark_version=version)
    answers = [a_prediction(key.item_id, run_id=run_id) for key in benchmark.items]
    a_journal(settings.data, run, *answers, *map(a_judgement, answers), benchmark=benchmark)
    warehouse = Warehouse(settings.database, journal)
    warehouse.publish()
    return warehouse


def runs_in(warehouse: Warehouse, table: str) -> list[str]:
    with warehouse.reading() as db:
        return [
            run for (run,) in db.sql(f"select distinct run_id from {table} order by 1").fetchall()
        ]


def rows_of(warehouse: Warehouse, table: str) -> list[Any]:
    with warehouse.reading() as db:
        return db.sql(f"from {table} order by all").fetchall()


def evals(settings: Settings, *arguments: str) -> Result:
    environment = {"EVALS_SETTINGS": str(settings.root / "eval_pipeline.toml"), "COLUMNS": "80"}
    return CliRunner().invoke(app, arguments, env=environment)


def test_published_versions_are_named_one_after_the_other(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)

    first = mint(journal, settings)
    write_questions(settings, "questions.jsonl", "new")
    second = mint(journal, settings)
    write_questions(settings, "questions.jsonl", "newer")
    third = mint(journal, settings, "spring")
    write_questions(settings, "questions.jsonl", "newest")
    fourth = mint(journal, settings)

    versions = [first, second, third, fourth]
    assert [one.minted_as for one in versions] == ["v1", "v2", "spring", "v3"]
    assert minted(journal) == versions
    assert len({one.benchmark_version for one in versions}) == 4
    assert current(journal, settings).version == fourth


def test_what_has_not_changed_is_not_published_again(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    version = mint(journal, settings).benchmark_version
    before = journal.snapshot()

    with pytest.raises(RunError, match=rf"since v1 was published \({version}\)"):
        mint(journal, settings, "other")

    assert journal.snapshot() == before


def test_a_name_is_given_once(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    mint(journal, settings, "v2")
    write_questions(settings, "questions.jsonl", "new")
    before = journal.snapshot()

    with pytest.raises(RunError, match="There is a version v2 already"):
        mint(journal, settings, "v2")

    assert journal.snapshot() == before
    assert mint(journal, settings).minted_as == "v1"


def test_an_earlier_version_can_be_published_again(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    questions = (tmp_path / "questions.jsonl").read_text()
    mint(journal, settings)
    write_questions(settings, "questions.jsonl", "new")
    mint(journal, settings)
    (tmp_path / "questions.jsonl").write_text(questions)

    again = mint(journal, settings)

    warehouse = Warehouse(settings.database, journal)
    assert again.minted_as == "v3"
    assert state(warehouse) == [("v3", True, True), ("v2", False, False)]


def test_until_one_is_published_the_version_loaded_last_is_shown(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    warehouse = evaluated(settings, "first")
    on_board = runs_in(warehouse, "leaderboard")
    write_questions(settings, "questions.jsonl", "new")
    keep(load_benchmark(settings), warehouse.journal)

    warehouse.publish()

    assert on_board == ["first"]
    assert state(warehouse) == [(None, False, False), (None, True, True)]
    assert runs_in(warehouse, "leaderboard") == []
    assert runs_in(warehouse, "metrics") == ["first"]


def test_a_draft_that_is_loaded_later_does_not_replace_the_published_version(
    tmp_path: Path,
) -> None:
    settings = settings_in(tmp_path)
    mint(Journal(settings.journal), settings)
    evaluated(settings, "official")
    write_questions(settings, "questions.jsonl", "draft")
    keep(load_benchmark(settings), Journal(settings.journal))

    warehouse = evaluated(settings, "trial")

    assert state(warehouse) == [("v1", True, False), (None, False, True)]
    assert runs_in(warehouse, "leaderboard") == ["official"]
    assert runs_in(warehouse, "metrics") == ["official", "trial"]


def test_runs_of_other_versions_leave_the_leaderboard_and_stay_in_the_results(
    tmp_path: Path,
) -> None:
    settings = settings_in(tmp_path)
    evaluated(settings, "before")
    write_questions(settings, "questions.jsonl", "q1", "new")
    journal = Journal(settings.journal)
    paid = journal.snapshot(PREDICTIONS), journal.snapshot(JUDGED), journal.snapshot(RUNS)

    mint(journal, settings)
    warehouse = Warehouse(settings.database, journal)
    warehouse.publish()

    assert (journal.snapshot(PREDICTIONS), journal.snapshot(JUDGED), journal.snapshot(RUNS)) == paid
    assert runs_in(warehouse, "leaderboard") == []
    assert runs_in(warehouse, "runs") == runs_in(warehouse, "metrics") == ["before"]
    after = evaluated(settings, "after")
    assert runs_in(after, "leaderboard") == ["after"]
    assert runs_in(after, "metrics") == ["after", "before"]


def test_a_rebuilt_file_has_the_same_version_published(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    mint(Journal(settings.journal), settings)
    evaluated(settings, "official")
    write_questions(settings, "questions.jsonl", "draft")
    keep(load_benchmark(settings), Journal(settings.journal))
    warehouse = evaluated(settings, "trial")
    before = state(warehouse, "*"), rows_of(warehouse, "leaderboard")

    settings.database.unlink()
    warehouse.publish()

    assert (state(warehouse, "*"), rows_of(warehouse, "leaderboard")) == before
    assert len(before[1]) == 1


def test_the_commands_publish_and_list_versions(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    evaluated(settings, "before")
    version = current(Journal(settings.journal), settings).version.benchmark_version

    published = evals(settings, "benchmark", "mint", "[b]a[/b]")
    again = evals(settings, "benchmark", "mint")
    listed = evals(settings, "benchmark", "list")

    assert published.output == (
        f"[b]a[/b] is published: version {version}, 3 items. "
        "Runs of other versions are kept, and no longer on the leaderboard.\n"
    )
    assert isinstance(again.exception, RunError)
    (line,) = [line for line in listed.output.splitlines() if version in line]
    assert line.split()[:2] == [version, "[b]a[/b]"]
    assert "on the leaderboard" in line
    assert line.split()[-1] == "1"


def test_listing_versions_before_anything_was_loaded_works(tmp_path: Path) -> None:
    listed = evals(settings_in(tmp_path), "benchmark", "list")

    assert listed.exit_code == 0
    assert "Benchmark versions" in listed.output


def test_the_runs_of_a_draft_are_told_apart_from_the_leaderboard(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    journal = Journal(settings.journal)
    evaluated(settings, "old")
    write_questions(settings, "questions.jsonl", "official")
    mint(journal, settings)
    evaluated(settings, "official")
    write_questions(settings, "questions.jsonl", "draft")
    keep(load_benchmark(settings), journal)
    evaluated(settings, "trial")
    draft = current(journal, settings).version.benchmark_version

    listed = evals(settings, "benchmark", "list")
    shown = evals(settings, "leaderboard")

    lines = [line.split() for line in listed.output.splitlines()]
    assert [line[1:-3] for line in lines if line[-1:] == ["1"]] == [
        ["draft"],
        ["v1", "on", "the", "leaderboard"],
        ["archived"],
    ]
    sentence = f"Not on it: runs of the draft {draft}: 1. To publish it: evals benchmark mint"
    assert sentence in shown.output
