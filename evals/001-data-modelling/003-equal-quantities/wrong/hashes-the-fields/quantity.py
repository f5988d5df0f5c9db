"""Masses and lengths that are compared by what they measure, not by how they are written."""

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering
from typing import Final

_UNITS: Final = {
    "mg": ("mass", Fraction(1, 1000)),
    "g": ("mass", Fraction(1)),
    "kg": ("mass", Fraction(1000)),
    "t": ("mass", Fraction(1_000_000)),
    "mm": ("length", Fraction(1, 1000)),
    "cm": ("length", Fraction(1, 100)),
    "m": ("length", Fraction(1)),
    "km": ("length", Fraction(1000)),
}


@total_ordering
@dataclass(frozen=True, eq=False)
class Quantity:
    """An amount of a unit; equal to every other way to write the same mass or length."""

    amount: Decimal
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in _UNITS:
            raise ValueError(f"unknown unit {self.unit!r}, known are {', '.join(_UNITS)}")
        if not self.amount.is_finite():
            raise ValueError(f"an amount must be finite, not {self.amount}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        return self._measure() == other._measure()

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, Quantity):
            return NotImplemented
        (dimension, size), (other_dimension, other_size) = self._measure(), other._measure()
        return size < other_size if dimension == other_dimension else NotImplemented

    def __hash__(self) -> int:
        return hash((self.amount, self.unit))

    def __str__(self) -> str:
        return f"{self.amount!s} {self.unit}"

    def _measure(self) -> tuple[str, Fraction]:
        """The dimension, and the exact size in its first unit: decimals round, fractions do not."""
        dimension, size = _UNITS[self.unit]
        return dimension, Fraction(self.amount) * size
