"""What others compute, to compare our numbers with."""

import gc
from collections.abc import Iterable

import pytest
from statsmodels.stats.multitest import multipletests


def holm_of_statsmodels(p_values: Iterable[float]) -> list[float]:
    """Adjusted p-values; without the collection of all garbage that it begins with each time."""
    with pytest.MonkeyPatch.context() as own:
        own.setattr(gc, "collect", lambda: 0)
        return list(multipletests([*p_values], method="holm")[1])
