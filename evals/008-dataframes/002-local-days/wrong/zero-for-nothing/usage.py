"""Adds up meter readings by the calendar day of a time zone."""

import pandas as pd


def daily_usage(readings: pd.Series, zone: str) -> pd.Series:
    """The sum of each local day."""
    index = pd.DatetimeIndex(readings.index)
    local = readings.set_axis(index.tz_convert(zone).tz_localize(None))
    return local.resample("D").sum().rename("kwh").rename_axis("day")
