"""Who carries a process's work to its store: claims hold leases, and what is written goes up."""

import asyncio
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from platform import node
from secrets import token_hex
from typing import Any

from eval_pipeline.journal.disk import BusyError, JournalError, explained
from eval_pipeline.journal.folder import (
    DIAGNOSES,
    JUDGED,
    PREDICTIONS,
    Journal,
    Stream,
    file_name,
)
from eval_pipeline.running import in_a_thread
from eval_pipeline.store import leases
from eval_pipeline.store.copying import WorkingCopy
from eval_pipeline.store.leases import Held, Lease, LostError
from eval_pipeline.store.objects import LEASE_S, Objects, StoreError
from eval_pipeline.store.rounds import Rounds

UPLOAD_EVERY_S = 5.0
WATCH_EVERY_S = 1.0
ASK_AGAIN_S = 2.0
AT_ONCE = 16

log = logging.getLogger(__name__)
_couriers: dict[tuple[str, Path, bool], "Courier"] = {}
_making = threading.Lock()


def courier_of(journal: Journal) -> "Courier":
    """The one of this process for the journal and its store."""
    if journal.store is None:
        raise ValueError("the journal has no store")
    key = journal.store.url, journal.root.absolute(), journal.read_only
    with _making:
        if key not in _couriers:
            _couriers[key] = Courier(journal)
        return _couriers[key]


@dataclass
class _Claim:
    """A lease that is being kept, and whom to tell if it is lost."""

    lease: Lease
    models: list[str] | None
    tell: Callable[[], object]
    lost: bool = False


class Courier:
    """Between one working copy and its store, in threads: nothing that is asked waits for it."""

    def __init__(self, journal: Journal) -> None:
        if journal.store is None:
            raise ValueError("the journal has no store")
        self.url = journal.store.url
        self._root = journal.root
        self._copy = WorkingCopy(journal, Objects(journal.store))
        self._quick = Objects(journal.store, longest_s=LEASE_S, retries=0)
        self._claims: dict[str, _Claim] = {}
        self._changing, self._carrying = threading.Lock(), threading.Lock()
        self._synced_from = 0.0
        self._rounds: list[Rounds] = []

    def sync(self) -> None:
        """Returns when all is here that was in the store, and there what was here."""
        asked = time.monotonic()
        with self._carrying:
            if self._synced_from > asked:  # somebody else has begun, and ended, one since
                return
            began = time.monotonic()
            self._copy.fetch()
            self._copy.mend(self._is_ours)
            self._copy.upload()
            self._synced_from = began

    def bury(self, model: str, run_id: str) -> None:
        """Deletes the run from the store, for everybody and for good."""
        with self._carrying:
            self._copy.bury(model, run_id)

    def has_lost(self, stream: Stream[Any], model: str) -> bool:
        """Whether this process had a lease for it and has lost it."""
        claim = self._claims.get(_lease_name(stream, model))
        return claim is not None and claim.lost

    @asynccontextmanager
    async def leased(self, stream: Stream[Any], model: str) -> AsyncIterator[None]:
        """Waits for the lease, then has all that others did; if it is lost, the work is ended."""
        lease = await self._waited_for(stream, model)
        loop, limit = asyncio.get_running_loop(), asyncio.timeout(None)

        def end() -> None:
            with suppress(RuntimeError):  # it has just ended by itself
                limit.reschedule(loop.time())

        claim = _Claim(lease, _models(stream, model), lambda: loop.call_soon_threadsafe(end))
        self._keep(claim)
        try:
            async with limit:
                await in_a_thread(self.sync)
                yield
        except TimeoutError:
            if limit.expired():
                raise LostError(self.url) from None
            raise
        finally:
            await in_a_thread(self._end, claim)

    @contextmanager
    def leased_soon(self, stream: Stream[Any], model: str, within_s: float) -> Iterator[None]:
        """The same for whoever would rather give up than wait."""
        end = time.monotonic() + within_s
        while isinstance(lease := self._take(stream, model), Held):
            if time.monotonic() > end:
                raise BusyError(
                    f"Nothing was changed: {lease.owner} is at work on the {stream.name} of "
                    f"{model}, and has the lease in {self.url}. Try again when it is done."
                )
            time.sleep(min(ASK_AGAIN_S, within_s))
        claim = _Claim(lease, _models(stream, model), lambda: None)
        self._keep(claim)
        try:
            self.sync()
            yield
        finally:
            self._end(claim)

    async def _waited_for(self, stream: Stream[Any], model: str) -> Lease:
        announced = False
        while isinstance(lease := await in_a_thread(self._take, stream, model), Held):
            if not announced:
                who = f"{lease.owner} has the lease in {self.url}"
                log.info("Waiting for the %s of %s: %s.", stream.name, model, who)
                announced = True
            await asyncio.sleep(ASK_AGAIN_S)
        return lease

    def _take(self, stream: Stream[Any], model: str) -> Lease | Held:
        return leases.take(self._quick, _lease_name(stream, model), _copy_name(self._root))

    def _keep(self, claim: _Claim) -> None:
        with self._changing:
            self._claims[claim.lease.name] = claim
            if not self._rounds:
                self._rounds = [
                    Rounds(self._renew, leases.RENEW_EVERY_S),
                    Rounds(self._upload, UPLOAD_EVERY_S),
                    Rounds(self._watch, WATCH_EVERY_S),
                ]

    def _end(self, claim: _Claim) -> None:
        """Sends the rest and gives the lease back; what can not be sent is sent the next time."""
        try:
            if not claim.lost:
                with self._carrying:
                    self._copy.upload(claim.models)
                    self._copy.sweep(claim.models)
                claim.lease.give_back()
        except JournalError as error:
            log.warning("Not everything is in the store yet: %s", error)
        finally:
            with self._changing:
                self._claims.pop(claim.lease.name, None)
                if not self._claims:
                    for one in self._rounds:
                        one.close()
                    self._rounds = []

    def _renew(self) -> None:
        with ThreadPoolExecutor(AT_ONCE, "leases") as pool:
            troubles = [one for one in pool.map(self._renew_one, self._kept()) if one]
        if troubles:
            log.warning("%d leases were not renewed: %s", len(troubles), troubles[0])

    def _renew_one(self, claim: _Claim) -> StoreError | None:
        try:
            claim.lease.renew()
        except LostError:
            self._lose(claim)
        except StoreError as error:
            return error
        return None

    def _watch(self) -> None:
        for claim in self._kept():
            if claim.lease.is_stale:
                self._lose(claim)

    def _upload(self) -> None:
        with self._carrying:
            try:
                claimed = [claim.models for claim in self._kept()]
                each = [models for models in claimed if models is not None]
                everything = len(each) < len(claimed)
                self._copy.upload(None if everything else [*chain(*each)])
            except JournalError as error:
                log.warning("What was answered waits on this disk: %s", error)

    def _kept(self) -> list[_Claim]:
        with self._changing:
            return [claim for claim in self._claims.values() if not claim.lost]

    @staticmethod
    def _lose(claim: _Claim) -> None:
        if not claim.lost:
            claim.lost = True
            claim.tell()

    def _is_ours(self, stream: Stream[Any], model: str) -> bool:
        return _lease_name(stream, model) in self._claims


def _models(stream: Stream[Any], model: str) -> list[str] | None:
    """What is written under the claim: of that model, or of nobody knows which."""
    return [model] if stream in (PREDICTIONS, JUDGED, DIAGNOSES) else None


def _lease_name(stream: Stream[Any], model: str) -> str:
    return f"{stream.name}-{file_name(model)}"


def _copy_name(root: Path) -> str:
    """What tells this working copy from others, also from one that was copied to a machine."""
    path = root / "locks" / "copy"
    with explained(path):
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            own = path.with_name(f".copy.{token_hex(8)}")
            own.write_text(token_hex(16))
            with suppress(FileExistsError):  # whoever was first has named it
                os.link(own, path)
            own.unlink()
        return f"{path.read_text()} on {node()}"
