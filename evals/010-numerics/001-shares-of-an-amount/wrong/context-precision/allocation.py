"""Divides amounts of money into shares."""

from decimal import ROUND_DOWN, Decimal


def allocate(amount: Decimal, weights: list[Decimal], places: int = 2) -> list[Decimal]:
    """Largest remainders first, in decimal arithmetic."""
    unit = Decimal(1).scaleb(-places)
    if not amount.is_finite() or amount % unit != 0:
        raise ValueError("the amount must be a whole number of units")
    if not weights or any(not weight.is_finite() or weight < 0 for weight in weights):
        raise ValueError("weights must be finite and not negative")
    total = sum(weights, Decimal(0))
    if total == 0:
        raise ValueError("at least one weight must be above zero")
    size = abs(amount)
    exact = [size * weight / total for weight in weights]
    shares = [part.quantize(unit, rounding=ROUND_DOWN) for part in exact]
    missing = int((size - sum(shares)) / unit)
    order = sorted(range(len(weights)), key=lambda i: (shares[i] - exact[i], i))
    for i in order[:missing]:
        shares[i] += unit
    return [-share if amount < 0 and share else share for share in shares]
