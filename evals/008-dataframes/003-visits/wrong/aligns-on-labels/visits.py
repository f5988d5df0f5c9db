"""Numbers the visits of each user in a log of events."""

import pandas as pd


def number_visits(events: pd.DataFrame, gap: pd.Timedelta) -> pd.Series:
    """For each event the number of the visit that it belongs to."""
    ordered = events.sort_values(["user", "at"])
    pause = ordered.groupby("user", dropna=False)["at"].diff()
    begins = (pause > gap).astype("int64")
    visit = begins.groupby(ordered["user"], dropna=False).cumsum() + 1
    return visit.sort_index().rename("visit")
