"""The journal of finished work: the truth, from which the warehouse is built."""

from eval_pipeline.journal.files import (
    BusyError,
    FileCompactedError,
    JournalError,
    ReadOnlyError,
    translate_os_errors,
)
from eval_pipeline.journal.journal import (
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
    "FileCompactedError",
    "Journal",
    "JournalError",
    "JournalWriter",
    "ReadOnlyError",
    "Stream",
    "translate_os_errors",
]
