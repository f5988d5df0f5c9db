"""A cache of limited size whose entries expire."""

from collections import OrderedDict


class BudgetCache:
    """Keeps what was used last, within a number of bytes; expired entries go when they are met."""

    def __init__(self, capacity: int) -> None:
        if capacity <= 0:
            raise ValueError("the capacity must be above zero")
        self.evicted = 0
        self._capacity = capacity
        self._used = 0
        self._entries: OrderedDict[str, tuple[str, int, float]] = OrderedDict()

    def put(self, key: str, value: str, *, size: int, ttl: float, now: float) -> bool:
        """Stores a value, at the cost of those used longest ago."""
        if size <= 0 or ttl <= 0:
            raise ValueError("size and ttl must be above zero")
        self._remove(key)
        if size > self._capacity:
            return False
        while self._used + size > self._capacity:
            oldest = next(iter(self._entries))
            if now < self._entries[oldest][2]:
                self.evicted += 1
            self._remove(oldest)
        self._entries[key] = (value, size, now + ttl)
        self._used += size
        return True

    def get(self, key: str, *, now: float) -> str | None:
        """The value of a live entry, which is thereby used."""
        if key not in self._entries:
            return None
        value, _, ends = self._entries[key]
        if now >= ends:
            self._remove(key)
            return None
        self._entries.move_to_end(key)
        return value

    def keys(self, *, now: float) -> list[str]:
        """The keys of the live entries."""
        return [key for key, (_, _, ends) in self._entries.items() if now < ends]

    def used(self, *, now: float) -> int:
        """The bytes of the live entries."""
        return sum(size for _, size, ends in self._entries.values() if now < ends)

    def _remove(self, key: str) -> None:
        if key in self._entries:
            self._used -= self._entries.pop(key)[1]
