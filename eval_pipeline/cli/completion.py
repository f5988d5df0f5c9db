"""What the Tab key completes: names that the settings and the results know.

A shell calls these while somebody types. So they ask no gateway, start nothing, print nothing,
and where something is wrong, or there is no project, they know no names.
"""

import os
import re
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr
from io import StringIO
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from duckdb import DuckDBPyConnection

    from eval_pipeline.settings import Settings

HARMLESS = re.compile(r"\w[\w./:@+~, -]*")
"""Shells evaluate what they are offered, and gateways and data files have a hand in names."""
IN_BASH = "complete_bash"


def models(incomplete: str) -> list[str]:
    """Every model that a gateway lists."""
    return _offered(incomplete, lambda settings: _named(settings, "models"))


def suites(incomplete: str) -> list[str]:
    """The suites of the settings."""
    return _offered(incomplete, lambda settings: [suite.name for suite in settings.suites])


def categories(incomplete: str) -> list[str]:
    """The categories of all suites."""
    return _offered(incomplete, lambda settings: _named(settings, "categories"))


def experiments(incomplete: str) -> list[str]:
    """The experiments of the settings."""
    return _offered(incomplete, lambda settings: settings.experiments)


def runs(incomplete: str) -> list[str]:
    """The first characters of every run's id, and the word for the latest."""
    return _offered(incomplete, lambda settings: ["latest", *_named(settings, "runs")])


def items(context: typer.Context, incomplete: str) -> list[str]:
    """The items of the run that the command names before."""
    run = str(context.params.get("run"))
    return _offered(incomplete, lambda settings: _items_of(settings, run))


def classifications(incomplete: str) -> list[str]:
    """What a failure can be."""
    from eval_pipeline.analysis.records import Classification

    return [name for name in Classification if name.startswith(incomplete.upper())]


def _offered(incomplete: str, known: "Callable[[Settings], Iterable[str]]") -> list[str]:
    try:
        with redirect_stderr(StringIO()):
            from eval_pipeline.settings import Settings

            names = list(known(Settings.from_env()))
    except Exception:  # noqa: BLE001  (whoever presses Tab has not asked what is wrong)
        return []
    fitting = (name for name in names if name.startswith(incomplete) and HARMLESS.fullmatch(name))
    return [_as_typed(name) for name in fitting]


def _as_typed(name: str) -> str:
    """Of all shells, bash alone takes a name for what is to be typed."""
    in_bash = os.environ.get("_EVALS_COMPLETE") == IN_BASH
    return name.replace(" ", "\\ ") if in_bash else name


def _named(settings: "Settings", sort: str) -> list[str]:
    from eval_pipeline.results.queries import query

    # Without parameters: for the first one, DuckDB loads pandas, which takes longer than the rest.
    with _results(settings) as db:
        return [name for (name,) in query(db, f"names/{sort}").fetchall()]


def _items_of(settings: "Settings", run: str) -> list[str]:
    from eval_pipeline.results.queries import query
    from eval_pipeline.results.runs import find_runs

    with _results(settings) as db:
        ids = [found.run_id for found in find_runs(db, run)]
        return [name for (name,) in query(db, "names/items", {"runs": ids}).fetchall()]


def _results(settings: "Settings") -> "DuckDBPyConnection":
    """The file as it is: to build it anew, as commands do, may take longer than a key may."""
    import duckdb

    return duckdb.connect(str(settings.database), read_only=True)
