"""What the Tab key offers in a shell."""

import subprocess
from pathlib import Path

import pytest
import typer

from eval_pipeline.cli.main import app
from eval_pipeline.cli.options import items
from eval_pipeline.journal import SIGHTINGS
from eval_pipeline.records.model import Sighting
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_model,
    a_question,
    a_run,
    settings_in,
)
from eval_pipeline_tests.project import call, environment

QUESTIONS = (
    a_question("q1"),
    a_question("q2", category="Computer Science/AI"),
    a_question("q3", category="$(touch trap)"),
    a_question("`touch trap`", category='\\"; touch trap #'),
)
MODELS = ("demo/strong", "demo/weak", "openai/gpt-5:azure")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs of two questions each, and names that would be commands if a shell took them so."""
    folder = tmp_path_factory.mktemp("completed")
    settings = settings_in(folder, questions=QUESTIONS)
    runs = (
        a_run("aaaaaaaa-1", plan=[("sample", "q1"), ("sample", "q2")]),
        a_run("bbbbbbbb-2", plan=[("sample", "q2"), ("sample", "q3")]),
    )
    journal = a_journal(settings.data, *runs, benchmark=a_benchmark(*QUESTIONS))
    seen = [Sighting(model=a_model(name), selected=True, seen_at=NOON) for name in MODELS]
    journal.write_whole(SIGHTINGS, "20250101T120000.0", records=seen)
    Warehouse(settings.database, journal).publish()
    return folder


def offered(project: Path, line: str, shell: str = "bash") -> list[str]:
    """What a shell is told when Tab is pressed at the end of the line."""
    words = line.split(" ")
    told = call(
        project,
        "evals",
        {
            "_EVALS_COMPLETE": f"complete_{shell}",
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
            "_TYPER_COMPLETE_ARGS": line,
            "COMP_WORDS": "\n".join(words),
            "COMP_CWORD": str(len(words) - 1),
        },
    )
    assert told.stderr == ""
    return [name for name in told.stdout.splitlines() if name]


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("evals run -m ", list(MODELS)),
        ("evals run -m demo/s", ["demo/strong"]),
        ("evals run -m nobody", []),
        ("evals run --exclude-model open", ["openai/gpt-5:azure"]),
        ("evals run -s ", ["sample"]),
        ("evals run -c ", ["Computer\\ Science/AI", "Math"]),
        ("evals run -c Ma", ["Math"]),
        ("evals run -e web", ["web_search", "web_search_no_guidelines"]),
        ("evals run --resume ", ["latest", "aaaaaaaa", "bbbbbbbb"]),
        ("evals fix b", ["bbbbbbbb"]),
        ("evals lead", ["leaderboard"]),
    ],
)
def test_tab_offers_the_names_that_fit(project: Path, line: str, names: list[str]) -> None:
    assert offered(project, line) == names


@pytest.mark.parametrize(
    ("run", "incomplete", "names"),
    [
        ("aaaa", "", ["q1", "q2"]),
        ("latest", "", ["q1", "q2"]),
        ("bbbb", "", ["q2", "q3"]),
        ("demo/strong@bbbb", "q3", ["q3"]),
        ("nothing", "", []),
    ],
)
def test_the_items_that_tab_offers_are_those_of_the_run(
    project: Path, monkeypatch: pytest.MonkeyPatch, run: str, incomplete: str, names: list[str]
) -> None:
    monkeypatch.chdir(project)
    show = typer.main.get_group(app).commands["show"]
    context = typer.Context(show, resilient_parsing=True)
    show.parse_args(context, [run])

    assert items(context, incomplete) == names


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_shells_that_quote_by_themselves_get_names_as_they_are(project: Path, shell: str) -> None:
    told = "\n".join(offered(project, "evals run -c Comp", shell))

    assert "Computer Science/AI" in told


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_name_that_a_shell_could_obey_is_not_offered(project: Path, shell: str) -> None:
    told = "\n".join(offered(project, "evals run -c ", shell))

    assert "Math" in told
    assert "touch" not in told


def test_bash_completes_with_the_script_that_the_command_gives(project: Path) -> None:
    typed = "COMP_WORDS=(evals run -c Comp) COMP_CWORD=3; _evals_completion evals Comp -c"
    script = f'eval "$(evals --show-completion)"; {typed}; echo "${{COMPREPLY[@]}}"; complete -p'

    done = in_bash(project, script)

    assert done.stdout.splitlines() == [
        "Computer\\ Science/AI",
        "complete -o default -F _evals_completion evals",
    ]


def test_completion_is_installed_for_the_shell_that_asks(tmp_path: Path) -> None:
    done = in_bash(tmp_path, "evals --install-completion; true", HOME=str(tmp_path))

    assert "bash completion installed" in done.stdout
    assert "evals.sh" in (tmp_path / ".bashrc").read_text("utf-8")


def in_bash(folder: Path, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "--norc", "-c", script],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )


@pytest.mark.parametrize("option", ["-m", "-s", "-c", "-e", "--resume"])
def test_outside_a_project_there_is_nothing_to_offer(tmp_path: Path, option: str) -> None:
    assert offered(tmp_path, f"evals run {option} ") == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("eval_pipeline.toml", "suites = 5"),
        ("eval_pipeline.toml", "]["),
        (".env", "= = ="),
        ("data/evals.duckdb", "no database"),
    ],
)
def test_a_broken_project_offers_nothing_and_says_nothing(
    tmp_path: Path, name: str, text: str
) -> None:
    settings_in(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / name).write_text(text, "utf-8")

    assert offered(tmp_path, "evals run -m ") == []


def test_a_project_without_results_knows_what_its_settings_say(tmp_path: Path) -> None:
    settings_in(tmp_path)

    assert offered(tmp_path, "evals run -s ") == ["sample"]
    assert offered(tmp_path, "evals run --resume ") == []
    assert not (tmp_path / "data").exists()
