"""Numbers the visits of each user in a log of events."""

import pandas as pd


def number_visits(events: pd.DataFrame, gap: pd.Timedelta) -> pd.Series:
    """For each event the number of the visit that it belongs to."""
    rows = events.reset_index(drop=True)
    pause = rows.groupby("user", dropna=False)["at"].diff()
    begins = (pause > gap).astype("int64")
    visit = begins.groupby(rows["user"], dropna=False).cumsum() + 1
    return visit.set_axis(events.index).rename("visit")
