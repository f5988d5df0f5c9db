"""`evals` is there at once: what a command does not need, it does not load."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline_tests.builders import a_warehouse, settings_in
from eval_pipeline_tests.project import environment, run

HEAVY = {
    *("dagster", "duckdb", "numpy", "pandas", "pydantic"),
    *("aiohttp", "httpx", "huggingface_hub", "prompt_toolkit", "questionary", "uvloop"),
}
TYPERS_OWN = {"pydantic"}
"""What typer itself loads as soon as it looks at a command's options."""
# As the installed command does, and at its end what it has loaded.
LOADED = """
import atexit, json, sys
sys.argv = json.loads(sys.argv[1])
loaded = lambda: print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
atexit.register(loaded)
from eval_pipeline.cli.main import main
main()
"""


def loaded(folder: Path, *command: str, **variables: str) -> set[str]:
    """The packages that a command has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(command)],
        cwd=folder,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_the_installed_command_is_the_one_that_is_looked_at_here(tmp_path: Path) -> None:
    assert "Usage: evals" in run(tmp_path, "evals --help").stdout


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        ("evals --help", set()),
        ("evals -h", set()),
        ("evals run --help", TYPERS_OWN),
        ("evals analyze --help", TYPERS_OWN),
    ],
)
def test_help_loads_nothing_but_what_reads_the_command_line(
    tmp_path: Path, command: str, needed: set[str]
) -> None:
    there = loaded(tmp_path, *command.split())

    assert "typer" in there
    assert there & HEAVY == needed


# Ctrl-C is pressed while a package is loaded that makes another error of it, as some do.
INTERRUPTED = """
import signal, sys
class Garbles:
    def find_spec(self, name, *_):
        if name == "duckdb":
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise ImportError("That has never happened before.")
sys.meta_path.insert(0, Garbles())
from eval_pipeline.cli.entry import main
main()
"""


@pytest.mark.parametrize("command", ["status", "run", "rebuild"])
def test_ctrl_c_while_it_loads_ends_it_without_a_word(tmp_path: Path, command: str) -> None:
    settings_in(tmp_path)

    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, command],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("evals ", TYPERS_OWN),
        ("evals run -e ", TYPERS_OWN),
        ("evals run -m ", {*TYPERS_OWN, "duckdb"}),
    ],
)
def test_the_tab_key_loads_neither_dagster_nor_clients(
    tmp_path: Path, line: str, needed: set[str]
) -> None:
    a_warehouse(settings_in(tmp_path).data)
    words = line.split(" ")
    typed = {
        "_EVALS_COMPLETE": "complete_bash",
        "COMP_WORDS": "\n".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }

    there = loaded(tmp_path, "evals", **typed)

    assert there & HEAVY == needed


def test_the_menu_asks_its_first_question_without_dagster() -> None:
    needed = "eval_pipeline.cli.menu, eval_pipeline.cli.menu, questionary"
    code = f"import sys, {needed}; print(*sys.modules)"

    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    there = {name.partition(".")[0] for name in done.stdout.split()}
    assert there & {"dagster", "pandas"} == set()
