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
WELL, WRITABLE = "ok", os.W_OK | os.X_OK
HELD = "Conflicting lock"
"""DuckDB's words for a file that is being written: readers get a fresh copy."""


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
    checks = {"results": _results, "journal": _journal, "disk": _disk}
    return Report({name: _words(check, settings) for name, check in checks.items()})


def _words(check: Callable[[Settings], str], settings: Settings) -> str:
    try:
        return check(settings)
    except OSError as error:
        return f"It can not be used ({error.strerror})."
    except Exception as error:  # noqa: BLE001  (what breaks one check must not end the others)
        return f"It can not be read ({type(error).__name__}): evals doctor"


def _results(settings: Settings) -> str:
    if not settings.database.exists():
        return "There are none: evals rebuild"
    try:
        with opened(settings.database) as db:
            is_newer = schema_version(db) > VERSION
    except duckdb.IOException as error:
        if HELD in str(error):
            return WELL
        raise
    return "They were written by a newer version of eval_pipeline: update." if is_newer else WELL


def _journal(settings: Settings) -> str:
    journal = open_journal(settings)
    if not journal.root.is_dir():
        # Where nothing was ever evaluated there is none yet.
        with opened(settings.database) as db:
            has_runs = db.sql("select 1 from runs limit 1").fetchone() is not None
        return "It is gone: mount or restore it." if has_runs else WELL
    journal.parts(RUNS)  # refuses what a newer version wrote
    # In production only the API writes.
    is_ours = settings.production is None
    return "It cannot be written." if is_ours and not os.access(journal.root, WRITABLE) else WELL


def _disk(settings: Settings) -> str:
    if any(one.state is State.WRONG for one in room("disk", settings.data, settings.database)):
        free = shutil.disk_usage(settings.data).free // MEGABYTE
        return f"Too little is free ({free} MB): make room."
    return WELL
