"""Reads parcels from CSV."""

from io import StringIO

import pandas as pd

COLUMNS = ["tracking", "country", "grams", "customs", "delivered", "note"]


def read_parcels(text: str) -> pd.DataFrame:
    """One row per record."""
    frame = pd.read_csv(
        StringIO(text),
        dtype={"tracking": "str", "country": "str", "note": "str"},
        keep_default_na=False,
        na_values={name: [""] for name in ("country", "grams", "customs", "delivered")},
        true_values=["yes"],
        false_values=["no"],
        skipinitialspace=True,
    )[COLUMNS]
    return frame.convert_dtypes(convert_string=False, convert_floating=False)
