"""Masses and lengths."""

from dataclasses import dataclass
from decimal import Decimal

_MASSES = ("mg", "g", "kg", "t")
_LENGTHS = ("mm", "cm", "m", "km")


@dataclass(frozen=True, order=True)
class Quantity:
    """An amount of a unit."""

    amount: Decimal
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in _MASSES + _LENGTHS:
            raise ValueError(f"unknown unit {self.unit!r}")
        if not self.amount.is_finite():
            raise ValueError("an amount must be finite")

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}"
