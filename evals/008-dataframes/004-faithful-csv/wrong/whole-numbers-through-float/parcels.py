"""Reads parcels from CSV without guessing what its fields might mean."""

from io import StringIO

import pandas as pd

COLUMNS = ["tracking", "country", "grams", "customs", "delivered", "note"]


def read_parcels(text: str) -> pd.DataFrame:
    """One row per record; only an empty field is missing, and an empty note is a note."""
    fields = pd.read_csv(StringIO(text), dtype=str, keep_default_na=False)[COLUMNS]
    result = fields.copy()
    result["country"] = fields["country"].mask(fields["country"] == "")
    for name in ("grams", "customs"):
        result[name] = pd.to_numeric(fields[name], errors="coerce").astype("Int64")
    result["delivered"] = fields["delivered"].map({"yes": True, "no": False}).astype("boolean")
    return result
