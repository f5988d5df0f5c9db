"""The `evals` command: which commands there are, and how errors are told.

Each command loads what it needs when it is called, so that `evals --help` is there at once.
"""

import logging
import os
import sys
from traceback import format_exception, format_tb
from typing import Annotated

import typer

from eval_pipeline.cli import (
    analyze,
    coding,
    data,
    exchange,
    results,
    run,
    show,
    web,
)
from eval_pipeline.cli.output import (
    End,
    LastResort,
    complain,
    end_in_order,
    json_log_requested,
    json_printed,
    print_json,
    say,
)
from eval_pipeline.cli.project import read_settings
from eval_pipeline.errors import MendableError

DEBUG = "EVALS_DEBUG"
UNKNOWN_KEYS = "what it says is not shown, since the settings can not be read."

app = typer.Typer(
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Evaluate language models. Without a command: a menu.",
)

OTHER_NAMES = {show.list_items: "list", show.show_item: "show"}
for panel, commands in {
    "Run": (run.run, run.fix, run.job, analyze.analyze),
    "Look": (
        *(show.list_items, show.models, show.due, show.status, show.runs, show.show_item),
        *(analyze.failures, analyze.debug, web.view, show.doctor),
    ),
    "Numbers": (results.leaderboard, results.metrics, results.compare),
    "Data": (
        *(analyze.classify, data.query, data.delete, data.prune),
        *(exchange.push, exchange.sync, data.rebuild, data.schema),
    ),
    "Suites": (coding.new, coding.validate_answers, coding.ablate, coding.demo_server),
}.items():
    for command in commands:
        app.command(OTHER_NAMES.get(command), rich_help_panel=panel)(command)
app.add_typer(web.site, name="site", rich_help_panel="Look")
app.add_typer(results.benchmark, name="benchmark", rich_help_panel="Numbers")
app.add_typer(web.tokens, name="tokens", rich_help_panel="Data")
app.add_typer(exchange.exports, name="export", rich_help_panel="Data")
app.add_typer(exchange.imports, name="import", rich_help_panel="Data")
app.add_typer(coding.toolchains, name="toolchain", rich_help_panel="Suites")

CLEANING_UP = {
    *("doctor", "export", "delete", "prune", "classify", "rebuild", "benchmark"),
    *("import", "push", "sync", "tokens", "view", "site"),
    *("new", "validate-answers", "ablate", "demo-server", "toolchain"),
}
"""The commands that clean up when interrupted; launches and queries do so once they are loaded."""


@app.callback(invoke_without_command=True)
def begin(
    context: typer.Context,
    *,
    debug: Annotated[
        bool, typer.Option("--debug", envvar=DEBUG, help="Show where in the code an error arose.")
    ] = False,
    deployment: Annotated[
        str | None,
        typer.Option("--deployment", help="Another deployment than that of the settings."),
    ] = None,
    production: Annotated[
        bool, typer.Option("--production", help="Write to production; needs a token for it too.")
    ] = False,
) -> None:
    # In the environment, for Dagster's processes too.
    if deployment is not None:
        os.environ["EVALS_DEPLOYMENT"] = deployment
    if production:
        os.environ["EVALS_PRODUCTION"] = "1"
    del debug  # `main` reads it
    if context.invoked_subcommand in CLEANING_UP:
        end_in_order()
    if context.invoked_subcommand is not None:
        return
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        say(context.get_help())
        sys.exit(End.WRONG_USE)
    end_in_order()
    from eval_pipeline.cli.menu import menu

    menu(app)


def main() -> None:
    """Run the command; what went wrong is said in a sentence or two."""
    json_printed.set(False)
    logging.lastResort = LastResort()
    for_programs = "--json" in sys.argv
    try:
        # For programs typer must not print by itself what is wrong with an option.
        sys.exit(app(standalone_mode=not (for_programs or json_log_requested())))
    except Exception as error:  # noqa: BLE001  (the last place that can report it)
        if _is_interruption(error) and not isinstance(error, MendableError):
            sys.exit(End.INTERRUPTED)
        how, words = _in_words(error)
        in_full = os.environ.get(DEBUG) or "--debug" in sys.argv
        complain(_in_full(error) if in_full else words, logging.ERROR)
        if for_programs and not json_printed.get():
            print_json({"ended": how.word, "error": words})
        sys.exit(how)


def _is_interruption(error: BaseException | None) -> bool:
    """Return whether Ctrl-C became another error, as in packages that were just being loaded."""
    while error is not None:
        # Pydantic turns an interrupt into a SchemaError that names it only in its text.
        if isinstance(error, KeyboardInterrupt) or (
            type(error).__name__ == "SchemaError" and KeyboardInterrupt.__name__ in str(error)
        ):
            return True
        error = error.__cause__ or error.__context__
    return False


def _in_words(error: Exception) -> tuple[End, str]:
    """Return the exit code and the message of an error."""
    match error:
        case MendableError():
            return End.WRONG_USE if error.wrong_use else End.FAILED, str(error)
        case typer.TyperException():
            wrong_use = error.exit_code == End.WRONG_USE
            return End.WRONG_USE if wrong_use else End.FAILED, error.format_message()
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            return End.FAILED, f"{where}{error.strerror or error}"
        case _:
            return End.FAILED, (
                f"{type(error).__name__}: {_without_keys(str(error))}\n"
                "That should not happen; `evals --debug` before the command shows where it did."
            )


def _in_full(error: Exception) -> str:
    """Return the error with its traceback."""
    text = "".join(format_exception(error)).rstrip()
    if isinstance(error, MendableError):
        return text
    where = "".join(format_tb(error.__traceback__))
    return _without_keys(text, unless_known=f"{where}{type(error).__name__}")


def _without_keys(text: str, *, unless_known: str = UNKNOWN_KEYS) -> str:
    """Redact the text of an unexpected error, which may hold anything."""
    try:
        return read_settings().redact(text)
    except MendableError:
        return unless_known
