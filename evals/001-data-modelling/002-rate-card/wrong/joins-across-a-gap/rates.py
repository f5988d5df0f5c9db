"""Prices on two time axes: the day a price holds from, and the moment it became known."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal


@dataclass(frozen=True)
class _Entry:
    effective: date
    recorded: datetime
    price: Decimal | None


class RateCard:
    """A price list that remembers what was believed when."""

    def __init__(self) -> None:
        self._entries: defaultdict[str, list[_Entry]] = defaultdict(list)

    def record(
        self, sku: str, price: Decimal | None, *, effective: date, recorded: datetime
    ) -> None:
        """Adds what was learned at the moment `recorded`."""
        _require_offset(recorded)
        self._entries[sku].append(_Entry(effective, recorded, price))

    def price(self, sku: str, *, on: date, known: datetime) -> Decimal | None:
        """The price on a day, as it was believed at a moment."""
        begun = [entry for entry in self._believed(sku, known) if entry.effective <= on]
        return begun[-1].price if begun else None

    def periods(self, sku: str, *, known: datetime) -> list[tuple[date, date | None, Decimal]]:
        """The times at which the sku was sold, as it was believed at a moment."""
        entries = self._believed(sku, known)
        ends = [*(entry.effective for entry in entries[1:]), None]
        found: list[tuple[date, date | None, Decimal]] = []
        for entry, end in zip(entries, ends, strict=False):
            if entry.price is None:
                continue
            start = entry.effective
            # A price that did not change goes on.
            if found and found[-1][2] == entry.price:
                start = found.pop()[0]
            found.append((start, end, entry.price))
        return found

    def _believed(self, sku: str, known: datetime) -> list[_Entry]:
        """The entry that counts for each effective day, oldest day first."""
        _require_offset(known)
        entries = [entry for entry in self._entries.get(sku, []) if entry.recorded <= known]
        # Sorting is stable: of those recorded at the same moment, the one passed last stays last.
        entries.sort(key=lambda entry: entry.recorded)
        by_day = {entry.effective: entry for entry in entries}
        return [by_day[day] for day in sorted(by_day)]


def _require_offset(moment: datetime) -> None:
    if moment.utcoffset() is None:
        raise ValueError(f"{moment.isoformat()} has no UTC offset")
