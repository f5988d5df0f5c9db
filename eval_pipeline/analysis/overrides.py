"""What a person says a failure is: checked, kept in the journal, and wins over the analyst."""

import secrets
from collections.abc import Sequence
from typing import NamedTuple

import duckdb

from eval_pipeline.analysis.failures import WRONG, classified, failures_of_item
from eval_pipeline.errors import MendableError
from eval_pipeline.evaluation.item_prompt import Chosen
from eval_pipeline.journal import RECLASSIFIED, Journal
from eval_pipeline.records.base import now, whole_characters
from eval_pipeline.records.diagnosis import Classification, Reclassification
from eval_pipeline.results.runs import Row
from eval_pipeline.text import unknown


class ClassifyingError(MendableError):
    """Why a failure can not be classified so."""


class Word(NamedTuple):
    """What somebody says of a failure; without a classification the analyst's counts again."""

    classification: Classification | None
    note: str = ""
    sample: int | None = None


def read_word(name: str | None, note: str, sample: int | None, *, undo: bool) -> Word:
    """Return what is said, as typed: either a classification or that it is to be undone."""
    if (name is None) is not undo:
        raise ClassifyingError("Name either a classification or --undo.")
    if name is None:
        return Word(None, note, sample)
    try:
        return Word(Classification(name.strip().upper().replace("-", "_")), note, sample)
    except ValueError:
        raise ClassifyingError(unknown("classification", name, list(Classification))) from None


def wrong_replies(db: duckdb.DuckDBPyConnection, chosen: Chosen, sample: int | None) -> list[Row]:
    """Return the wrong replies that are meant; raise if there is none."""
    failed = [one for one in failures_of_item(db, chosen) if sample in (None, one["sample"])]
    if wrong := [one for one in failed if one["went"] == WRONG]:
        return wrong
    item = _path(chosen.key._asdict())
    which = item if sample is None else f"Sample {sample} of {item}"
    known = f"has {failed[0]['went']}" if failed else "has not failed"
    run = f"{chosen.model}@{chosen.run_id[:8]}"
    raise ClassifyingError(
        f"{which} {known} in run {run}: only wrong replies are classified (evals failures {run})."
    )


def check(wrong: Sequence[Row], word: Word) -> None:
    """Raise if that cannot be said of these failures."""
    if word.classification is None and not any(one["overridden"] for one in wrong):
        raise ClassifyingError("Nobody has classified that failure, so nothing is to be undone.")
    if word.classification is not None and not any(map(str.isalnum, word.note)):
        raise ClassifyingError("Say why, for whoever reads it later: --note TEXT")
    if word.classification is Classification.KNOWN_GAP and not wrong[0]["has_gaps"]:
        raise ClassifyingError(
            f"{_path(wrong[0])} has no GAPS.txt, so no gap is known: write it down there first, "
            f"for later runs, or say {Classification.OVERLY_STRICT} or "
            f"{Classification.AMBIGUOUS_TASK}."
        )


def keep(journal: Journal, chosen: Chosen, word: Word) -> None:
    """Write it into the journal."""
    said = Reclassification(
        run_id=chosen.run_id,
        model=chosen.model,
        **chosen.key._asdict(),
        sample=word.sample,
        classification=word.classification,
        note=whole_characters(word.note.strip()),
        classified_at=now(),
    )
    name = f"{said.classified_at:%Y%m%dT%H%M%S.%f}-{secrets.token_hex(3)}"
    journal.write_whole(RECLASSIFIED, chosen.model, chosen.run_id, name, records=[said])


def told(before: Row, after: Row) -> str:
    """Return what a failure was classified as, and is now."""
    sample = f", sample {after['sample']}" if after["samples"] > 1 else ""
    run = f"run {after['run_id'][:8]} of {after['model']}"
    return f"{_path(after)}{sample}, {run}: was {classified(before)}, is {classified(after)}."


def _path(row: Row) -> str:
    return f"{row['suite']}/{row['item_id']}"
