"""Joins invoices with whoever owns their account."""

import pandas as pd


def attach_owners(invoices: pd.DataFrame, assignments: pd.DataFrame) -> pd.DataFrame:
    """The invoices with the owner and badge of the latest assignment of their account."""
    latest = (
        assignments.sort_values("since", kind="stable")
        .drop_duplicates("account", keep="last")[["account", "owner", "badge"]]
        .astype({"badge": "Int64"})
    )
    joined = invoices.merge(latest, on="account", how="left", validate="many_to_one")
    return joined.set_axis(invoices.index, axis="index")
