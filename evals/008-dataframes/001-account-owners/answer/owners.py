"""Joins invoices with whoever owns their account."""

import pandas as pd


def attach_owners(invoices: pd.DataFrame, assignments: pd.DataFrame) -> pd.DataFrame:
    """The invoices with the owner and badge of the latest assignment of their account."""
    latest = (
        assignments.dropna(subset=["account"])
        .sort_values("since", kind="stable")
        .drop_duplicates("account", keep="last")
        .set_index("account")
    )
    account = invoices["account"]
    # Looking accounts up keeps the rows as they are, and a missing account finds nothing.
    return invoices.assign(
        owner=account.map(latest["owner"]),
        badge=account.map(latest["badge"].astype("Int64")).astype("Int64"),
    )
