"""Divides amounts of money into shares."""

from decimal import Decimal
from fractions import Fraction


def allocate(amount: Decimal, weights: list[Decimal], places: int = 2) -> list[Decimal]:
    """Floors every share, then hands out the missing units by largest remainder."""
    if not amount.is_finite():
        raise ValueError("the amount must be finite")
    units = Fraction(amount) * Fraction(10) ** places
    if units.denominator != 1:
        raise ValueError("the amount must be a whole number of units")
    if not weights or any(not weight.is_finite() or weight < 0 for weight in weights):
        raise ValueError("weights must be finite and not negative")
    total = sum(Fraction(weight) for weight in weights)
    if total == 0:
        raise ValueError("at least one weight must be above zero")
    exact = [units * Fraction(weight) / total for weight in weights]
    shares = [part.numerator // part.denominator for part in exact]
    missing = units.numerator - sum(shares)
    order = sorted(range(len(weights)), key=lambda i: (shares[i] - exact[i], i))
    for i in order[:missing]:
        shares[i] += 1
    return [
        Decimal((int(share < 0), tuple(int(digit) for digit in str(abs(share))), -places))
        for share in shares
    ]
