"""Reads parcels from CSV without guessing what its fields might mean."""

from io import StringIO

import pandas as pd

COLUMNS = ["tracking", "country", "grams", "customs", "delivered", "note"]
DELIVERED = {"yes": True, "no": False}


def read_parcels(text: str) -> pd.DataFrame:
    """One row per record; only an empty field is missing, and an empty note is a note."""
    fields = pd.read_csv(StringIO(text), dtype="str", keep_default_na=False)[COLUMNS]
    known = fields.mask(fields == "")
    return fields.assign(
        country=known["country"],
        grams=known["grams"].astype("Int64"),
        customs=known["customs"].astype("Int64"),
        delivered=known["delivered"].map(DELIVERED).astype("boolean"),
    )
