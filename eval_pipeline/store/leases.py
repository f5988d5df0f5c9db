"""Leases in a store: of all machines, one at a time works on a model's stage.

A lease is the object `leases/NAME/GENERATION` with the highest generation. Whoever makes the next
one, which only one can, has it. Its holder writes it anew all the time. Given back, it is empty;
not written for long, by the clock of the store alone, it has expired. Nothing else is asked of a
store than to make an object only if there is none.
"""

import json
import os
import time
from platform import node
from typing import NamedTuple

from eval_pipeline.records import now
from eval_pipeline.store.names import LEASES
from eval_pipeline.store.objects import Found, MissingError, Objects, StoreError, TakenError

EXPIRES_S = 90.0
RENEW_EVERY_S = 10.0
GIVE_UP_S = 45.0
"""Who could not renew a lease for so long stops: long before anybody else may take it."""
_DIGITS = 12


class LostError(StoreError):
    """The lease is somebody else's, or may be by now."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"The lease in {url} could not be renewed, or another machine has it by now. What was "
            "answered is kept on this disk and goes there the next time: materialize again."
        )


class Held(NamedTuple):
    """Who has a lease."""

    owner: str


class Lease:
    """One that this process has taken."""

    def __init__(self, objects: Objects, name: str, generation: int, content: bytes) -> None:
        self.name = name
        self.generation = generation
        self.renewed_at = time.monotonic()
        self._objects = objects
        self._content = content

    @property
    def is_stale(self) -> bool:
        """Whether it was not renewed for too long."""
        return time.monotonic() - self.renewed_at > GIVE_UP_S

    def renew(self) -> None:
        """Raises LostError if somebody else has taken it."""
        began = time.monotonic()
        self._objects.put(_object(self.name, self.generation), self._content)
        if _latest(self._objects, self.name)[0] > self.generation:
            raise LostError(self._objects.url)
        self.renewed_at = began

    def give_back(self) -> None:
        """The next one need not wait."""
        self._objects.put(_object(self.name, self.generation), b"")


def take(objects: Objects, name: str, copy: str) -> Lease | Held:
    """The lease, or who has it; `copy` names the working copy, whose own lock was taken before."""
    generation, found = _latest(objects, name)
    if found is not None and found.size and (held := _held(objects, found, copy)):
        return held
    signed = {
        "copy": copy,
        "owner": f"process {os.getpid()} on {node()} since {now():%H:%M:%S} UTC",
    }
    content = json.dumps(signed).encode()
    lease = Lease(objects, name, generation + 1, content)
    try:
        objects.create(_object(name, lease.generation), content)
    except TakenError:
        return Held("another process")
    # Between the two, others may have taken and given back several.
    if _latest(objects, name)[0] > lease.generation:
        objects.delete([_object(name, lease.generation)])
        return Held("another process")
    if found is not None:
        objects.delete([found.name])
    return lease


def _held(objects: Objects, found: Found, copy: str) -> Held | None:
    """Who has it; None if it has expired, or was left by a process of this very copy."""
    try:
        signed = json.loads(objects.get(found.name))
        owner, of = str(signed["owner"])[:200], signed["copy"]
    except MissingError:
        return Held("another process")
    except (ValueError, KeyError, TypeError):
        owner, of = "somebody who has not signed", None
    if of == copy or (objects.now() - found.changed_at).total_seconds() > EXPIRES_S:
        return None
    return Held(owner if owner.isprintable() else "somebody who has not signed")


def _latest(objects: Objects, name: str) -> tuple[int, Found | None]:
    """The highest generation there is, 0 if there is none, and its object."""
    found = {
        int(last): one
        for one in objects.find(f"{LEASES}/{name}")
        if (last := one.name.rpartition("/")[2]).isascii()
        and last.isdecimal()
        and len(last) == _DIGITS
    }
    generation = max(found, default=0)
    return generation, found.get(generation)


def _object(name: str, generation: int) -> str:
    return f"{LEASES}/{name}/{generation:0{_DIGITS}}"
