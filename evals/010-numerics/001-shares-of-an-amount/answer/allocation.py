"""Divides amounts of money into shares that lose nothing."""

from decimal import Decimal
from fractions import Fraction


def allocate(amount: Decimal, weights: list[Decimal], places: int = 2) -> list[Decimal]:
    """One share per weight; the units lost by rounding go to those that lost the most."""
    units = _whole_units(amount, places)
    parts = _exact_parts(abs(units), weights)
    shares = [part.numerator // part.denominator for part in parts]
    missing = abs(units) - sum(shares)
    by_loss = sorted(range(len(parts)), key=lambda i: shares[i] - parts[i])
    for i in by_loss[:missing]:
        shares[i] += 1
    return [_as_decimal(-share if units < 0 else share, places) for share in shares]


def _whole_units(amount: Decimal, places: int) -> int:
    if not amount.is_finite():
        raise ValueError(f"the amount is not a finite number: {amount}")
    units = Fraction(amount) * Fraction(10) ** places
    if units.denominator != 1:
        raise ValueError(f"{amount} has more than {places} decimals")
    return units.numerator


def _exact_parts(units: int, weights: list[Decimal]) -> list[Fraction]:
    for weight in weights:
        if not weight.is_finite() or weight < 0:
            raise ValueError(f"a weight must be a finite number and not negative: {weight}")
    exact = [Fraction(weight) for weight in weights]
    total = sum(exact)
    if total == 0:
        raise ValueError("at least one weight must be above zero")
    return [units * weight / total for weight in exact]


def _as_decimal(units: int, places: int) -> Decimal:
    # Built from digits, since arithmetic would round to the precision of the decimal context.
    sign, digits, _ = Decimal(units).as_tuple()
    return Decimal((sign, digits, -places))
