"""Who is worth the money."""

from collections.abc import Sequence
from math import isnan


def pareto_front(costs: Sequence[float], accuracies: Sequence[float]) -> list[int]:
    """Who is not beaten, cheapest first: nobody else costs no more and is no worse.

    Equals do not beat each other. Who has no cost or no accuracy is not in front.
    """
    pairs = enumerate(zip(costs, accuracies, strict=True))
    known = [one for one, pair in pairs if not any(map(isnan, pair))]
    front: list[int] = []
    for one in sorted(known, key=lambda one: (costs[one], -accuracies[one])):
        best = front[-1] if front else None
        if (
            best is None
            or accuracies[one] > accuracies[best]
            or (costs[one], accuracies[one]) == (costs[best], accuracies[best])
        ):
            front.append(one)
    return front
