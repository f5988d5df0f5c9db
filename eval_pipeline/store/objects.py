"""An object store through obstore, which is the extra `lake`: few requests, errors as sentences."""

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from eval_pipeline.journal.disk import UnreachableError
from eval_pipeline.store.place import Place

if TYPE_CHECKING:
    from obstore.store import ObjectStore

AT_ONCE = 8 * 1024 * 1024
"""Bytes of one request: it is over in time, and tried again on its own."""
LONGEST_S, CONNECT_S, RETRIES = 30, 5, 2
LEASE_S = 10
"""A lease that is answered late is worth nothing, so nobody waits for it as long."""
CLOCK = "clock"
_STATUS = re.compile(r"status code: (\d{3}[A-Za-z ]{0,30})")


class StoreError(UnreachableError):
    """The store can not be used, or does not have what was asked for."""


class MissingError(StoreError):
    """An object is not, or no longer, there."""


class TakenError(StoreError):
    """An object that was to be made is there already."""


class Found(NamedTuple):
    """An object of a listing."""

    name: str
    size: int
    changed_at: datetime


class Objects:
    """The objects below a place's address, by name."""

    def __init__(self, place: Place, *, longest_s: int = LONGEST_S, retries: int = RETRIES) -> None:
        self.url = place.url
        self._library: Any = _imported()
        with self._explained():
            self._store = _opened(place, longest_s, retries)

    def find(self, prefix: str) -> Iterator[Found]:
        """Every object below the prefix."""
        with self._explained():
            for batch in self._library.list(self._store, f"{prefix}/"):
                for one in batch:
                    yield Found(one["path"], one["size"], one["last_modified"])

    def get(self, name: str) -> bytes:
        """All of an object that is small."""
        with self._explained(name, may_be_missing=True):
            return bytes(self._library.get(self._store, name).bytes())

    def pieces(self, name: str, size: int) -> Iterator[bytes]:
        """All of an object of that size, in pieces."""
        for start in range(0, size, AT_ONCE):
            with self._explained(name, may_be_missing=True):
                end = min(size, start + AT_ONCE)
                yield bytes(self._library.get_range(self._store, name, start=start, end=end))

    def put(self, name: str, content: bytes | Path) -> None:
        """Makes or replaces an object; others see the old one or all of the new one."""
        with self._explained():
            whole = isinstance(content, bytes)
            self._library.put(self._store, name, content, use_multipart=False if whole else None)

    def create(self, name: str, content: bytes) -> None:
        """Makes an object that nobody else has made: of several who try, one succeeds."""
        with self._explained(name):
            self._library.put(self._store, name, content, mode="create")

    def delete(self, names: Iterable[str]) -> None:
        """Deletes these; those that are gone are no trouble."""
        for name in names:
            with self._explained():
                try:
                    self._library.delete(self._store, name)
                except FileNotFoundError:
                    continue

    def now(self) -> datetime:
        """What time it is by the store's clock, by which alone the ages of leases are told."""
        self.put(CLOCK, b"")
        with self._explained():
            told: datetime = self._library.head(self._store, CLOCK)["last_modified"]
            return told

    @contextmanager
    def _explained(self, name: str = "", *, may_be_missing: bool = False) -> Iterator[None]:
        errors = self._library.exceptions
        try:
            yield
        except errors.AlreadyExistsError:
            raise TakenError(f"{self.url}/{name} is there already.") from None
        except (errors.BaseError, NotImplementedError, OSError, ValueError) as error:
            if may_be_missing and isinstance(error, FileNotFoundError):
                raise MissingError(f"{self.url}/{name} is not there.") from None
            # The library's own words may have the whole request in them.
            status = _STATUS.search(str(error))
            why = status[1].strip() if status else "no answer"
            raise StoreError(
                f"The store {self.url} can not be used ({why}). What was answered is kept on this "
                "disk and goes there when it can be used again: evals doctor"
            ) from None


def _imported() -> Any:
    try:
        import obstore  # noqa: PLC0415  (it is an extra, and whoever has no store does without)
        import obstore.store  # noqa: PLC0415
    except ImportError:
        raise StoreError(
            "A store needs obstore: install the extra `lake`, as in "
            "`uv pip install --require-hashes -r deploy/requirements.lock`."
        ) from None
    return obstore


def _opened(place: Place, longest_s: int, retries: int) -> "ObjectStore":
    from obstore.store import LocalStore, from_url  # noqa: PLC0415

    open_url: Callable[..., ObjectStore] = from_url
    scheme, _, path = place.url.partition("://")
    if scheme == "file":
        return LocalStore(path, mkdir=True, automatic_cleanup=False)
    given = {name.lower(): value.get_secret_value() for name, value in place.options.items()}
    family = {"s3": "aws_", "gs": "google_"}.get(scheme, "azure_")
    config: dict[str, Any] = {name: text for name, text in given.items() if name.startswith(family)}
    # Without encryption only if somebody says so.
    said = config.pop("aws_allow_http", "")
    client: Any = {
        "timeout": timedelta(seconds=longest_s),
        "connect_timeout": timedelta(seconds=min(CONNECT_S, longest_s)),
        "allow_http": said.lower() in ("1", "true"),
    }
    patience: Any = {
        "max_retries": retries,
        "retry_timeout": timedelta(seconds=2 * longest_s),
    }
    return open_url(place.url, config=config, client_options=client, retry_config=patience)
