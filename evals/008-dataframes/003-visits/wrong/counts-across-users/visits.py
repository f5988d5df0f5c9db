"""Numbers the visits of each user in a log of events."""

import pandas as pd


def number_visits(events: pd.DataFrame, gap: pd.Timedelta) -> pd.Series:
    """For each event the number of the visit that it belongs to."""
    ordered = events.reset_index(drop=True).sort_values(["user", "at"], kind="stable")
    pause = ordered["at"].diff()
    begins = (pause > gap).astype("int64")
    visit = begins.groupby(ordered["user"], dropna=False).cumsum() + 1
    return visit.sort_index().set_axis(events.index).rename("visit")
