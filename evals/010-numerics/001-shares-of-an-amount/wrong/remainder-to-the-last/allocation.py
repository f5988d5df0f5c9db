"""Divides amounts of money into shares."""

from decimal import ROUND_HALF_UP, Decimal


def allocate(amount: Decimal, weights: list[Decimal], places: int = 2) -> list[Decimal]:
    """Rounds every share; the last one takes what is left over."""
    unit = Decimal(1).scaleb(-places)
    if not amount.is_finite() or amount != amount.quantize(unit):
        raise ValueError("the amount must be a whole number of units")
    if not weights or any(not weight.is_finite() or weight < 0 for weight in weights):
        raise ValueError("weights must be finite and not negative")
    total = sum(weights)
    if total == 0:
        raise ValueError("at least one weight must be above zero")
    shares = [
        (amount * weight / total).quantize(unit, rounding=ROUND_HALF_UP) for weight in weights[:-1]
    ]
    shares.append((amount - sum(shares)).quantize(unit))
    return shares
