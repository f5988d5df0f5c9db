"""Configuration in, domain objects out."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, Self

import dagster as dg
import duckdb
from dagster_duckdb import DuckDBResource
from pydantic import Field, PrivateAttr

from eval_pipeline.alive import alive
from eval_pipeline.deployment import may_write
from eval_pipeline.journal import Journal, Stream
from eval_pipeline.settings import Settings
from eval_pipeline.store.place import Place
from eval_pipeline.warehouse import Warehouse

_PLACES: dict[str, Place] = {}
"""What opens each store: Dagster shows the configuration of resources, so it is not in there."""


class WarehouseResource(DuckDBResource):
    """The results. A DuckDBResource for one's own assets too, but read-only and never blocked."""

    journal_folder: str = Field(description="Where finished work is kept: the source of truth.")

    store: str = Field(
        default="", description="The object store that it is shared through, if there is one."
    )

    read_only: bool = Field(
        default=False, description="Whether this is production, not to be changed."
    )

    _has_published: bool = PrivateAttr(default=False)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Self]:
        """As long as a run has this, which all of ours need, it is known to be alive."""
        self.journal.refuse_if_read_only()
        run = context.run
        with alive(Path(self.journal_folder), run.run_id) if run else nullcontext():
            self.journal.refresh()
            yield self

    @property
    def journal(self) -> Journal:
        folder = Path(self.journal_folder)
        return Journal(folder, read_only=self.read_only, store=_PLACES.get(self.store))

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
    if place := settings.place:
        _PLACES[place.url] = place
    return {
        "settings": settings,
        "warehouse": WarehouseResource(
            database=str(settings.database),
            journal_folder=str(settings.journal),
            store=settings.store or "",
            read_only=not may_write(settings),
        ),
    }
