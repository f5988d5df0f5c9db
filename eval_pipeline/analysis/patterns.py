"""What failures of a run have in common: found in SQL, told in a sentence each."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import duckdb

from eval_pipeline.results.queries import query, rows
from eval_pipeline.results.runs import Row
from eval_pipeline.results.stats.intervals import wilson
from eval_pipeline.results.tables.format import one_line
from eval_pipeline.text import listed

MOST = 10
"""Patterns of a kind that are told."""
MOST_NAMED = 5


class Kind(StrEnum):
    """What is the same."""

    ERROR = "same error"
    RULE = "same rule"
    CATEGORY = "same category"
    ITEM = "same item across models"


@dataclass(frozen=True)
class Pattern:
    """Something that `count` of so many have in common.

    These are failed items of the run, for a category those of its items that were judged, and for
    items across models the models that were asked them. The sentence may hold words of models: it
    is plain text.
    """

    kind: Kind
    subject: str
    count: int
    of: int
    items: tuple[str, ...]
    models: tuple[str, ...]
    sentence: str


def patterns_of(
    db: duckdb.DuckDBPyConnection, run_id: str, model: str, judge: str, judge_version: str
) -> list[Pattern]:
    """Return the patterns in one judge's verdicts on a run, by kind, the most frequent first."""
    given = {"run_id": run_id, "model": model, "judge": judge, "judge_version": judge_version}
    found = [_pattern(kind, row) for kind in Kind for row in _rows(db, kind, given)]
    # Checkers say of a rule what is broken: that is no second thing in common.
    ruled = {one.items for one in found if one.kind is Kind.RULE}
    return [one for one in found if one.kind is not Kind.ERROR or one.items not in ruled]


def _rows(db: duckdb.DuckDBPyConnection, kind: Kind, given: Mapping[str, str]) -> list[Row]:
    name = f"summaries/patterns_{kind.name.lower()}"
    if kind is Kind.CATEGORY:
        return [row for row in rows(query(db, name, given)) if _stands_out(row)][:MOST]
    return rows(query(db, name, {**given, "most": MOST}))


def _stands_out(row: Row) -> bool:
    """Whether more of a category failed than chance makes of the share in the whole run."""
    interval = wilson(row["count"], row["of"])
    return interval is not None and interval.low > row["failed_in_all"] / row["judged_in_all"]


def _pattern(kind: Kind, row: Row) -> Pattern:
    count, of, subject = row["count"], row["of"], one_line(row["subject"])
    named, models = listed(row["items"], MOST_NAMED), row["models"]
    match kind:
        case Kind.ERROR:
            said = f"{count} of {of} failed items have the same error, “{subject}”: {named}."
        case Kind.RULE:
            said = f"{count} of {of} failed items break the rule {subject}: {named}."
        case Kind.CATEGORY:
            whole = f"{row['failed_in_all']} of {row['judged_in_all']}"
            said = (
                f"{count} of {of} judged items of the category {subject} failed, in the run as a "
                f"whole {whole}: {named}."
            )
        case Kind.ITEM:
            # Where not the same models failed all of them, the names would tell nothing.
            whose = f" ({listed(models, MOST_NAMED)})" if len(models) == count else ""
            said = f"{count} of {of} models failed: {named}{whose}."
    return Pattern(kind, subject, count, of, tuple(row["items"]), tuple(models), said)
