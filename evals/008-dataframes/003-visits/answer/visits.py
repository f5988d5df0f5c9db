"""Numbers the visits of each user in a log of events."""

import pandas as pd


def number_visits(events: pd.DataFrame, gap: pd.Timedelta) -> pd.Series:
    """For each event the number of the visit that it belongs to."""
    # Positions instead of labels: they are unique, so that results find back to their rows.
    ordered = events.reset_index(drop=True).sort_values("at", kind="stable")
    pause = ordered.groupby("user", dropna=False)["at"].diff()
    begins = (pause > gap).astype("int64")
    earlier = begins.groupby(ordered["user"], dropna=False).cumsum()
    return (earlier + 1).sort_index().set_axis(events.index).rename("visit")
