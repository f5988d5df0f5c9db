"""The items of a benchmark version on disk; in memory there is only where each of them is."""

import os
import sys
import weakref
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, NamedTuple

from pydantic import ConfigDict, ValidationError

from eval_pipeline.journal import JournalError
from eval_pipeline.records.base import Record
from eval_pipeline.records.item import ITEM, Item, ItemKey

READ_AHEAD = 64 * 1024


class Brief(NamedTuple):
    """What planning needs to know of an item."""

    key: ItemKey
    category: str
    has_image: bool


class Places:
    """Where each key stands in a sequence: what a dict would say, in an eighth of its memory."""

    def __init__(self, keys: Sequence[ItemKey]) -> None:
        self._keys = keys
        # Half empty at least, so that a key is found after a step or two.
        self._mask = (1 << (2 * len(keys)).bit_length()) - 1
        self._slots = array("i", b"\xff\xff\xff\xff" * (self._mask + 1))
        for place, key in enumerate(keys):
            self._slots[self._slot(key)] = place

    def find(self, key: object) -> int | None:
        """The key's place, if it has one."""
        place = self._slots[self._slot(key)]
        return None if place < 0 else place

    def _slot(self, key: object) -> int:
        """Where the key is entered, or else where it would be."""
        slot = hash(key) & self._mask
        while (place := self._slots[slot]) >= 0 and self._keys[place] != key:
            slot = (slot + 1) & self._mask
        return slot


class Items(Mapping[ItemKey, Item]):
    """The items in one or more files of JSON lines, in their order; each is read when asked for."""

    def __init__(self, files: Iterable[BinaryIO]) -> None:
        self._parts: list[_Part] = []
        self._keys: list[ItemKey] = []
        self._ends = array("q")
        self._kinds: dict[tuple[str, bool], int] = {}
        self._kind_of = array("i")
        for file in files:
            self._add(file)
        self._places = Places(self._keys)

    def __getitem__(self, key: ItemKey) -> Item:
        place = self._places.find(key)
        if place is None:
            raise KeyError(key)
        part = self._part(place)
        start = 0 if place == part.first else self._ends[place - 1]
        line = part.read(start, self._ends[place])
        try:
            return ITEM.validate_json(line)
        except ValidationError as error:
            raise _no_item(part.name, place - part.first + 1, error) from None

    def _part(self, place: int) -> "_Part":
        return self._parts[bisect_right(self._parts, place, key=lambda part: part.first) - 1]

    def __iter__(self) -> Iterator[ItemKey]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def briefs(self) -> Iterator[Brief]:
        """What planning needs of each item, without reading any."""
        kinds = list(self._kinds)
        for key, kind in zip(self._keys, self._kind_of, strict=True):
            yield Brief(key, *kinds[kind])

    def _add(self, file: BinaryIO) -> None:
        part = _Part(os.dup(file.fileno()), str(file.name), len(self._keys))
        weakref.finalize(self, os.close, part.descriptor)
        self._parts.append(part)
        file.seek(0)
        end = 0
        for number, line in enumerate(file, start=1):
            try:
                found = _Found.model_validate_json(line)
            except ValidationError as error:
                raise _no_item(part.name, number, error) from None
            end += len(line)
            self._ends.append(end)
            # Suites and categories are few: the same text for all items that share it.
            self._keys.append(ItemKey(sys.intern(found.suite), found.id))
            kind = (found.category, bool(found.image))
            self._kind_of.append(self._kinds.setdefault(kind, len(self._kinds)))


def briefs(items: Mapping[ItemKey, Item]) -> Iterator[Brief]:
    """What planning needs of each item; those that are in memory anyway are simply looked at."""
    if isinstance(items, Items):
        return items.briefs()
    return (Brief(key, item.category, bool(item.image)) for key, item in items.items())


@dataclass
class _Part:
    """One of the files, and the place of its first item."""

    descriptor: int
    name: str
    first: int
    ahead: tuple[int, bytes] = (0, b"")

    def read(self, start: int, end: int) -> bytes:
        """These bytes; more are read with them, for the next item to be asked is mostly near."""
        begin, data = self.ahead  # both at once, because threads may share the file
        if not begin <= start <= end <= begin + len(data):
            begin, data = start, os.pread(self.descriptor, max(end - start, READ_AHEAD), start)
            self.ahead = begin, data
        return data[start - begin : end - begin]


class _Found(Record):
    model_config = ConfigDict(extra="ignore")

    suite: str
    id: str
    category: str
    image: str | None


def _no_item(name: str, number: int, error: ValidationError) -> JournalError:
    return JournalError(
        f"{name}, line {number} is no item: {error.errors()[0]['msg']}. "
        "Was it written by another version of eval_pipeline? Nothing was changed."
    )
