"""The journal of finished work: the truth, from which the warehouse is built."""

from eval_pipeline.journal.disk import (
    BusyError,
    GoneError,
    JournalError,
    ReadOnlyError,
    explained,
)
from eval_pipeline.journal.folder import (
    ATTEMPTS,
    DIAGNOSES,
    FORMAT,
    ITEMS,
    JUDGED,
    LABELS,
    PREDICTIONS,
    RECLASSIFIED,
    REJUDGED,
    RUNS,
    SIGHTINGS,
    STREAMS,
    VERSIONS,
    Journal,
    Stream,
)
from eval_pipeline.journal.writer import JournalWriter

__all__ = [
    "ATTEMPTS",
    "DIAGNOSES",
    "FORMAT",
    "ITEMS",
    "JUDGED",
    "LABELS",
    "PREDICTIONS",
    "RECLASSIFIED",
    "REJUDGED",
    "RUNS",
    "SIGHTINGS",
    "STREAMS",
    "VERSIONS",
    "BusyError",
    "GoneError",
    "Journal",
    "JournalError",
    "JournalWriter",
    "ReadOnlyError",
    "Stream",
    "explained",
]
