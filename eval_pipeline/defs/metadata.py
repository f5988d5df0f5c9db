"""What an asset tells the UI: counts, tokens, cost, tables."""

from collections.abc import Iterable, Sequence

import dagster as dg
import duckdb
import pandas as pd

from eval_pipeline.stages.workers import Tally
from eval_pipeline.warehouse import query

MOST_ROWS = 200


def table(db: duckdb.DuckDBPyConnection, name: str) -> dg.MarkdownMetadataValue:
    """A query file's rows as a table."""
    return markdown(query(db, name).limit(MOST_ROWS).df())


def markdown(frame: pd.DataFrame) -> dg.MarkdownMetadataValue:
    return dg.MetadataValue.md(frame.to_markdown(index=False, floatfmt=".3f"))


def listed(texts: Iterable[str]) -> dg.MarkdownMetadataValue:
    """A list of names or sentences; an empty one says so."""
    return dg.MetadataValue.md("\n".join(f"- {text}" for text in texts) or "none")


def tallied(tallies: Sequence[Tally]) -> dict[str, int | float | dg.MarkdownMetadataValue]:
    """What a stage did, in all and for each model."""
    frame = pd.DataFrame(
        [
            {
                "model": tally.model,
                "pending": tally.planned,
                "done": tally.asked,
                **{str(outcome): count for outcome, count in tally.outcomes.items()},
                "cost_usd": tally.cost_usd,
                "stopped": tally.stopped or "",
            }
            for tally in tallies
        ]
    ).fillna(0)
    return {
        "pending": sum(tally.planned for tally in tallies),
        "done": sum(tally.asked for tally in tallies),
        "input_tokens": sum(tally.input_tokens for tally in tallies),
        "output_tokens": sum(tally.output_tokens for tally in tallies),
        "cost_usd": sum(tally.cost_usd for tally in tallies),
        "models": markdown(frame),
    }


def fail_if_nobody_could(tallies: Sequence[Tally]) -> None:
    """Fails the step if every model had to be given up; some of many are told in the metadata."""
    if tallies and all(tally.failed for tally in tallies):
        reasons = dict.fromkeys(tally.stopped or "" for tally in tallies)
        raise dg.Failure(" ".join(reasons), metadata=tallied(tallies))
