"""Health of this server, readable without a token, in words that name no files."""

import asyncio
import os
import shutil
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import duckdb

from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.doctor.report import State
from eval_pipeline.evaluation.doctor.storage import MEGABYTE, room
from eval_pipeline.journal import RUNS
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.results.schema import VERSION, schema_version
from eval_pipeline.results.warehouse import opened
from eval_pipeline.settings.settings import Settings

KEPT_S = 1.0
LONGEST_S = 5.0
"""A disk that has not answered by then hangs."""
WELL = "ok"
HELD = "Conflicting lock"
"""DuckDB's words for a file that is being written: readers get a fresh copy."""


class UnfitError(MendableError):
    """A check failed; the message says what is wrong."""


@dataclass(frozen=True)
class Report:
    """Results by check."""

    checks: Mapping[str, str]
    looked_at: float = field(default_factory=time.monotonic)

    @property
    def is_well(self) -> bool:
        return all(words == WELL for words in self.checks.values())

    def as_json(self) -> dict[str, Any]:
        status = WELL if self.is_well else "wrong"
        return {"status": status, "version": version("eval-pipeline"), "checks": self.checks}


class Health:
    """Checks at most once a second for all requests, and does not wait for checks that hang."""

    def __init__(self, settings: Settings, longest_s: float = LONGEST_S) -> None:
        self._settings = settings
        self._longest_s = longest_s
        self._own_thread = ThreadPoolExecutor(1, "health")
        self._looking: Future[Report] | None = None

    async def report(self) -> Report:
        """Return the report of now, or of a moment ago."""
        looking, oldest = self._looking, time.monotonic() - KEPT_S
        if looking is None or (looking.done() and looking.result().looked_at < oldest):
            looking = self._looking = self._own_thread.submit(look, self._settings)
        try:
            waiting = asyncio.shield(asyncio.wrap_future(looking))
            return await asyncio.wait_for(waiting, self._longest_s)
        except TimeoutError:
            return Report({"disk": f"It has not answered for {self._longest_s:g} s."})


def look(settings: Settings) -> Report:
    """Run all checks, at the cost of opening a file."""
    return Report({name: _words(check, settings) for name, check in _CHECKS.items()})


def _words(check: Callable[[Settings], None], settings: Settings) -> str:
    try:
        check(settings)
    except UnfitError as error:
        return str(error)
    except OSError as error:
        return f"It can not be used ({error.strerror})."
    except Exception as error:  # noqa: BLE001  (what breaks one check must not end the others)
        return f"It can not be read ({type(error).__name__}): evals doctor"
    return WELL


def _results(settings: Settings) -> None:
    if not settings.database.exists():
        raise UnfitError("There are none: evals rebuild")
    try:
        with opened(settings.database) as db:
            version = schema_version(db)
    except duckdb.IOException as error:
        if HELD in str(error):
            return
        raise
    if version > VERSION:
        raise UnfitError("They were written by a newer version of eval_pipeline: update.")


def _journal(settings: Settings) -> None:
    journal = open_journal(settings)
    if not journal.root.is_dir():
        # Where nothing was ever evaluated there is none yet.
        with opened(settings.database) as db:
            if db.sql("select 1 from runs limit 1").fetchone() is not None:
                raise UnfitError("It is gone: mount or restore it.")
        return
    journal.parts(RUNS)  # refuses what a newer version wrote
    # In production only the API writes.
    if settings.production is None and not os.access(journal.root, os.W_OK | os.X_OK):
        raise UnfitError("It can not be written.")


def _disk(settings: Settings) -> None:
    if any(one.state is State.WRONG for one in room("disk", settings.data, settings.database)):
        free = shutil.disk_usage(settings.data).free // MEGABYTE
        raise UnfitError(f"Too little is free ({free} MB): make room.")


_CHECKS: Mapping[str, Callable[[Settings], None]] = {
    "results": _results,
    "journal": _journal,
    "disk": _disk,
}
