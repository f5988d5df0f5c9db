"""Joins invoices with whoever owns their account."""

import pandas as pd


def attach_owners(invoices: pd.DataFrame, assignments: pd.DataFrame) -> pd.DataFrame:
    """The invoices with the owner and badge of the latest assignment of their account."""
    known = assignments.dropna(subset=["account"])
    newest = known.groupby("account")["since"].transform("max")
    latest = known[known["since"] == newest][["account", "owner", "badge"]]
    joined = (
        invoices.reset_index(names="_row")
        .merge(latest.astype({"badge": "Int64"}), on="account", how="left")
        .set_index("_row")
    )
    joined.index = joined.index.set_names(invoices.index.names)
    return joined
