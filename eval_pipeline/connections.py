"""DuckDB's engines: to start one takes longer than most of what it is asked."""

import os

import duckdb

_engines: dict[tuple[int, frozenset[tuple[str, str]]], duckdb.DuckDBPyConnection] = {}


def cursor(**settings: str) -> duckdb.DuckDBPyConnection:
    """A connection of its own to the one engine that this process has with these settings."""
    # What a fork takes along of another process's engine is of no use.
    key = os.getpid(), frozenset(settings.items())
    if key not in _engines:
        # It lives as long as the process, so it is not to remember what it has read.
        _engines[key] = duckdb.connect(config={"enable_external_file_cache": "false", **settings})
    return _engines[key].cursor()
