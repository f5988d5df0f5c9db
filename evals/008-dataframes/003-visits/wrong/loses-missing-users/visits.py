"""Numbers the visits of each user in a log of events."""

import pandas as pd


def number_visits(events: pd.DataFrame, gap: pd.Timedelta) -> pd.Series:
    """For each event the number of the visit that it belongs to."""
    ordered = events.reset_index(drop=True).sort_values(["user", "at"])
    pause = ordered.groupby("user")["at"].diff()
    begins = (pause.isna() | (pause > gap)).astype("int64")
    visit = begins.groupby(ordered["user"]).cumsum()
    return visit.sort_index().set_axis(events.index).fillna(1).astype("int64").rename("visit")
