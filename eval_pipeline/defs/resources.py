"""Configuration in, domain objects out."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

import dagster as dg
import duckdb
from dagster_duckdb import DuckDBResource
from pydantic import Field, PrivateAttr

from eval_pipeline.environment import SettingsError
from eval_pipeline.journal import Journal, Stream
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings import Settings

_SETTINGS: dict[str, Settings] = {}
"""By journal folder. Dagster shows the configuration of resources, so no key is in there, and takes
it from whoever launches, so it does not say what may be written."""


class WarehouseResource(DuckDBResource):
    """The results. A DuckDBResource for one's own assets too, but read-only and never blocked."""

    journal_folder: str = Field(description="Where finished work is kept: the source of truth.")

    _has_published: bool = PrivateAttr(default=False)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Self]:
        """As long as a run has this, which all of ours need, it is known to be alive."""
        self._refuse_another_place()
        self.journal.refuse_if_read_only()
        run = context.run
        with hold_run_lock(Path(self.journal_folder), run.run_id) if run else nullcontext():
            yield self

    @property
    def journal(self) -> Journal:
        settings = _SETTINGS.get(self.journal_folder)
        return open_journal(settings) if settings else Journal(Path(self.journal_folder))

    def _refuse_another_place(self) -> None:
        """A launch may choose what is done, and not where: that could be production."""
        settings = _SETTINGS.get(self.journal_folder)
        if settings is None or str(settings.database) != self.database:
            raise SettingsError(
                "resources.warehouse: where results are kept is said by the settings, not by a "
                "launch. Leave it out of the run config: docs/deployments.md"
            )

    @property
    def _warehouse(self) -> Warehouse:
        return Warehouse(Path(self.database), self.journal)

    def publish(self, *parts: Stream[Any]) -> None:
        """Brings the DuckDB file, or these parts of it, up to date with the journal."""
        self._warehouse.publish(*parts)
        self._has_published = self._has_published or not parts

    def publish_once(self) -> None:
        """For steps that journal nothing: what an earlier step of this run has published will do.

        While others are at work there would always be something newer, which they publish.
        """
        if not self._has_published:
            self.publish()

    @contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A short read-only connection to the published file."""
        with self._warehouse.reading() as connection:
            yield connection


def build_resources(settings: Settings) -> dict[str, object]:
    """Everything the assets are given."""
    _SETTINGS[str(settings.journal)] = settings
    return {
        "settings": settings,
        "warehouse": WarehouseResource(
            database=str(settings.database),
            journal_folder=str(settings.journal),
        ),
    }
