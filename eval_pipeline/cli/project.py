"""The project in the current folder: its settings, and its results as far as they are known."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from eval_pipeline.cli.output import complain

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from duckdb import DuckDBPyConnection

    from eval_pipeline.journal import Stream
    from eval_pipeline.results.warehouse import Warehouse
    from eval_pipeline.settings.settings import Settings

LARGE = 200_000_000
"""Bytes of answers and verdicts that take a while to publish: not while a launch writes more."""


def read_settings(*, writes: bool = False) -> "Settings":
    """Return the settings of the project in the current folder.

    For a command that `writes`, refuse production unless it is allowed.
    """
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    if writes:
        from eval_pipeline.journal.deployment import refuse_production

        refuse_production(settings)
    return settings


def open_warehouse(settings: "Settings | None" = None) -> "Warehouse":
    """Return the results of the project in the current folder."""
    from eval_pipeline.journal.deployment import open_journal
    from eval_pipeline.results.warehouse import Warehouse

    settings = settings or read_settings()
    return Warehouse(settings.database, open_journal(settings))


@contextmanager
def results(
    settings: "Settings | None" = None, *parts: "Stream[Any]", apart: bool = False
) -> "Iterator[DuckDBPyConnection]":
    """Publish journalled records, also those of running or killed launches, and open the results.

    `apart` opens a DuckDB engine of its own, for SQL that changes settings: see `opened`.
    """
    from eval_pipeline.journal import JournalError

    warehouse = open_warehouse(settings)
    try:
        warehouse.publish(*(parts or _worth_waiting_for(warehouse)))
    except JournalError as error:  # such as a folder that can only be read
        complain(f"{error}\nWhat follows is what was known before.")
    with warehouse.reading(apart=apart) as db:
        yield db


def _worth_waiting_for(warehouse: "Warehouse") -> "list[Stream[Any]]":
    """Return all parts, or the small ones while a launch keeps making large ones larger."""
    from eval_pipeline.journal import JUDGED, PREDICTIONS, REJUDGED, STREAMS
    from eval_pipeline.journal.locks import running_run_ids

    journal, large = warehouse.journal, (PREDICTIONS, JUDGED, REJUDGED)
    if not warehouse.path.exists() or not running_run_ids(journal.root):
        return list(STREAMS)
    if sum(path.stat().st_size for one in large for path in journal.files(one)) < LARGE:
        return list(STREAMS)
    complain("A launch is running: replies and verdicts are shown as they were last published.")
    return [one for one in STREAMS if one not in large]
