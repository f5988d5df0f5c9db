"""The `evals` command: which commands there are, and how errors are told.

Each command loads what it needs when it is called, so that `evals --help` is there at once.
"""

import os
import sys
from typing import Annotated

import typer

from eval_pipeline.cli import coding, data, doctor, launching, looking, numbers
from eval_pipeline.cli.output import End, complain, say
from eval_pipeline.errors import MendableError

DEBUG = "EVALS_DEBUG"
WORKING, READING, NUMBERS, DATA, SUITES = "Run", "Look", "Numbers", "Data", "Suites"

app = typer.Typer(
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Evaluate language models. Without a command: a menu.",
)

for panel, name, command in (
    (WORKING, "run", launching.run),
    (WORKING, "fix", launching.fix),
    (WORKING, "job", launching.job),
    (READING, "list", looking.list_items),
    (READING, "models", looking.models),
    (READING, "due", looking.due),
    (READING, "status", looking.status),
    (READING, "runs", looking.runs),
    (READING, "show", looking.show_item),
    (READING, "doctor", doctor.doctor),
    (NUMBERS, "leaderboard", numbers.leaderboard),
    (NUMBERS, "metrics", numbers.metrics),
    (NUMBERS, "compare", numbers.compare),
    (DATA, "query", data.query),
    (DATA, "export", data.export),
    (DATA, "delete", data.delete),
    (DATA, "rebuild", data.rebuild),
    (DATA, "schema", data.schema),
    (SUITES, "new", coding.new),
    (SUITES, "validate-answers", coding.validate_answers),
    (SUITES, "ablate", coding.ablate),
    (SUITES, "demo-server", coding.demo_server),
):
    app.command(name, rich_help_panel=panel)(command)
app.add_typer(numbers.benchmark, name="benchmark", rich_help_panel=NUMBERS)
app.add_typer(coding.toolchains, name="toolchain", rich_help_panel=SUITES)


@app.callback(invoke_without_command=True)
def begin(
    context: typer.Context,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG, help="Show where in the code an error arose.")
    ] = False,
) -> None:
    # How errors are told is decided where they arrive: see `main`.
    del debug
    if context.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(context.get_help())
        sys.exit(End.WRONG_USE)
    from eval_pipeline.cli.menu import menu

    menu(app)


def main() -> None:
    """Runs the command; what went wrong is said in a sentence or two."""
    try:
        app()
    except Exception as error:
        if os.environ.get(DEBUG) or "--debug" in sys.argv:
            raise
        complain(_in_words(error))
        wrong_use = isinstance(error, MendableError) and error.wrong_use
        sys.exit(End.WRONG_USE if wrong_use else End.FAILED)


def _in_words(error: Exception) -> str:
    match error:
        case MendableError():
            return str(error)
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return f"{where}{error.strerror or error}"
        case _:
            return (
                f"{type(error).__name__}: {_without_keys(str(error))}\n"
                "That should not happen; `evals --debug` before the command shows where it did."
            )


def _without_keys(text: str) -> str:
    """Nobody knows what an error that nobody expected says."""
    from eval_pipeline.settings import Settings

    try:
        return Settings.from_env().redact(text)
    except MendableError:
        return "what it says is not shown, since the settings can not be read."
