"""Configuration in, domain objects out."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import dagster as dg
import duckdb
from dagster_duckdb import DuckDBResource
from filelock import FileLock, Timeout
from pydantic import PrivateAttr

from eval_pipeline.journal import Journal, Stream
from eval_pipeline.journal.deployment import open_journal
from eval_pipeline.journal.files import quoted
from eval_pipeline.journal.locks import hold_run_lock
from eval_pipeline.records.model import Model
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings

FIRST_WAIT_S, LONGEST_WAIT_S, GROWTH = 0.2, 5.0, 1.5

log = logging.getLogger(__name__)


class WarehouseResource(DuckDBResource):
    """The DuckDB file of the results, read-only and never locked by a run, for any asset."""

    settings: dg.ResourceDependency[Settings]

    _has_published: bool = PrivateAttr(default=False)

    @contextmanager
    def yield_for_execution(self, context: dg.InitResourceContext) -> Iterator[Self]:
        """Hold the run's lock, which shows that it is alive, as long as the run has this."""
        # A launch may choose what is done, and not where: that could be production.
        if self.database != str(self.settings.database):
            raise SettingsError(
                "resources.warehouse: where results are kept is said by the settings, not by a "
                "launch. Leave it out of the run config: docs/deployments.md"
            )
        self.journal.refuse_if_read_only()
        run = context.run
        with hold_run_lock(self.settings.journal, run.run_id) if run else nullcontext():
            yield self

    @property
    def journal(self) -> Journal:
        return open_journal(self.settings)

    @property
    def _warehouse(self) -> Warehouse:
        return Warehouse(Path(self.database), self.journal)

    def publish(self, *parts: Stream[Any]) -> None:
        """Bring the DuckDB file, or these parts of it, up to date with the journal."""
        self._warehouse.publish(*parts)
        self._has_published = self._has_published or not parts

    def publish_once(self) -> None:
        """Publish unless an earlier step of this run has, for steps that journal nothing.

        While others are at work there would always be something newer, which they publish.
        """
        if not self._has_published:
            self.publish()

    @contextmanager
    def get_connection(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """Open a short read-only connection to the published file, with the `connection_config`."""
        # These settings must not affect other connections, so this one has an engine of its own.
        with self._warehouse.reading(apart=bool(self.connection_config)) as connection:
            for name, value in self.connection_config.items():
                setting = name.replace('"', '""')
                connection.execute(f'set "{setting}" = {quoted(value)}')
            yield connection


@dataclass(frozen=True)
class GatewaySlots:
    """Slots for the models that are asked through one gateway at a time, over all processes.

    Each is a file lock, which the system releases when its process dies. Dagster's pools belong to
    a step, and a step asks several models through several gateways.
    """

    folder: Path
    limit: int

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(settings.journal / "locks", settings.concurrency.max_concurrent_models)

    @asynccontextmanager
    async def hold(self, model: Model) -> AsyncIterator[None]:
        """Wait for a slot at the model's gateway and hold it."""
        wait = FIRST_WAIT_S
        with ExitStack() as held:
            while not self._take(model.gateway, held):
                if wait == FIRST_WAIT_S:
                    log.info(
                        "%s waits for one of the %d slots of gateway %s (max_concurrent_models).",
                        model.id,
                        self.limit,
                        model.gateway,
                    )
                await asyncio.sleep(wait)
                wait = min(wait * GROWTH, LONGEST_WAIT_S)
            yield

    def _take(self, gateway: str, held: ExitStack) -> bool:
        self.folder.mkdir(parents=True, exist_ok=True)
        for number in range(self.limit):
            lock = FileLock(self.folder / f"slot-{gateway}-{number}.lock", thread_local=False)
            try:
                held.enter_context(lock.acquire(blocking=False))
            except Timeout:
                continue
            return True
        return False


def build_resources(settings: Settings) -> dict[str, object]:
    """Return everything the assets are given."""
    warehouse = WarehouseResource(database=str(settings.database), settings=settings)
    return {"warehouse": warehouse}
