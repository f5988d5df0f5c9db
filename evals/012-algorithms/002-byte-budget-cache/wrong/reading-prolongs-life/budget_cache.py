"""A cache of limited size whose entries expire."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Entry:
    """A value, what it weighs and when it ends."""

    value: str
    size: int
    ttl: float
    ends: float


class BudgetCache:
    """Keeps what was used last, within a number of bytes."""

    def __init__(self, capacity: int) -> None:
        if capacity <= 0:
            raise ValueError("the capacity must be above zero")
        self.evicted = 0
        self._capacity = capacity
        # The entry used longest ago comes first: a use takes it out and puts it at the end.
        self._entries: dict[str, Entry] = {}

    def put(self, key: str, value: str, *, size: int, ttl: float, now: float) -> bool:
        """Stores a value, at the cost of those used longest ago; False if it is too large."""
        if size <= 0 or ttl <= 0:
            raise ValueError("size and ttl must be above zero")
        self._forget_expired(now)
        self._entries.pop(key, None)
        if size > self._capacity:
            return False
        self._make_room(size)
        self._entries[key] = Entry(value, size, ttl, now + ttl)
        return True

    def get(self, key: str, *, now: float) -> str | None:
        """The value of a live entry, which is thereby used."""
        self._forget_expired(now)
        entry = self._entries.pop(key, None)
        if entry is None:
            return None
        self._entries[key] = replace(entry, ends=now + entry.ttl)
        return entry.value

    def keys(self, *, now: float) -> list[str]:
        """The keys of the live entries, the one used longest ago first."""
        self._forget_expired(now)
        return list(self._entries)

    def used(self, *, now: float) -> int:
        """The bytes of the live entries."""
        self._forget_expired(now)
        return self._total()

    def _total(self) -> int:
        return sum(entry.size for entry in self._entries.values())

    def _forget_expired(self, now: float) -> None:
        self._entries = {key: entry for key, entry in self._entries.items() if now < entry.ends}

    def _make_room(self, size: int) -> None:
        excess = self._total() + size - self._capacity
        while excess > 0:
            oldest = next(iter(self._entries))
            excess -= self._entries.pop(oldest).size
            self.evicted += 1
