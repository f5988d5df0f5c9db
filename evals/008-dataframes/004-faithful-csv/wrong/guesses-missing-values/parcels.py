"""Reads parcels from CSV."""

from io import StringIO

import pandas as pd

COLUMNS = ["tracking", "country", "grams", "customs", "delivered", "note"]


def read_parcels(text: str) -> pd.DataFrame:
    """One row per record."""
    frame = pd.read_csv(
        StringIO(text),
        dtype={
            "tracking": "str",
            "country": "str",
            "grams": "Int64",
            "customs": "Int64",
            "delivered": "str",
            "note": "str",
        },
    )[COLUMNS]
    delivered = frame["delivered"].map({"yes": True, "no": False}).astype("boolean")
    return frame.assign(note=frame["note"].fillna(""), delivered=delivered)
