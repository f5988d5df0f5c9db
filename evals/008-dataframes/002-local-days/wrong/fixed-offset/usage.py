"""Adds up meter readings by the calendar day of a time zone."""

from datetime import timedelta

import pandas as pd


def daily_usage(readings: pd.Series, zone: str) -> pd.Series:
    """The sum of each local day; NaN where there is nothing to add up."""
    index = pd.DatetimeIndex(readings.index)
    offset = timedelta(0)
    if len(index):
        offset = index.min().tz_convert(zone).utcoffset() or offset
    local = readings.set_axis(index.tz_localize(None) + offset)
    return local.resample("D").sum(min_count=1).rename("kwh").rename_axis("day")
