"""The journal of finished work: the truth, from which the warehouse is built."""

from eval_pipeline.journal.disk import GoneError, JournalError, explained
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
    "GoneError",
    "Journal",
    "JournalError",
    "JournalWriter",
    "Stream",
    "explained",
]
