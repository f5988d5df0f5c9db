"""How a stage went, for the UI: the runs as a whole in numbers, outcomes and failures."""

from collections.abc import Mapping, Sequence

import duckdb

from eval_pipeline.analysis.analyse import Scope
from eval_pipeline.analysis.records import Classification
from eval_pipeline.analysis.report.paths import edited_copies
from eval_pipeline.analysis.report.write import Reported
from eval_pipeline.defs.metadata import Metadata, listed, markdown, rounded, tallied
from eval_pipeline.defs.tables import rows_by_model
from eval_pipeline.outcomes import Outcome
from eval_pipeline.record import Record
from eval_pipeline.results.queries import query, rows
from eval_pipeline.stages.predict import Launch
from eval_pipeline.stages.workers import Tally

_ON_THE_WAY = (Outcome.RATE_LIMITED, Outcome.TIMEOUT, Outcome.SERVER_ERROR)
OF_REPLIES = (
    Outcome.OK,
    Outcome.REFUSED,
    Outcome.TRUNCATED,
    Outcome.TRUNCATED_THINKING,
    Outcome.CONTENT_FILTER,
    Outcome.EMPTY,
    *_ON_THE_WAY,
)
OF_VERDICTS = (Outcome.OK, Outcome.JUDGE_UNPARSABLE, *_ON_THE_WAY)


class Went(Record):
    """How a stage went: its numbers, how much ended how, and what did not end well."""

    numbers: dict[str, int | float | str | None]
    outcomes: dict[Outcome, int]
    failures: tuple[dict[str, int | str], ...]

    @classmethod
    def of(cls, row: Mapping[str, object]) -> "Went":
        """From a row of a summary, by column."""
        apart = {name: row[name] for name in ("outcomes", "failures")}
        rest = {name: value for name, value in row.items() if name not in apart}
        return cls.model_validate({"numbers": rest, **apart})

    def told(self, common: Sequence[Outcome]) -> Metadata:
        """A number for each outcome, also for common ones that did not occur: so it is plotted."""
        outcomes = {**dict.fromkeys(common, 0), **self.outcomes}
        return {
            **{name: rounded(value) for name, value in self.numbers.items() if value is not None},
            **{f"outcome_{outcome}": count for outcome, count in outcomes.items()},
            "failures": markdown(self.failures),
        }


def how_asking_went(
    db: duckdb.DuckDBPyConnection, tallies: Sequence[Tally], experiment: str, launch: Launch
) -> dict[str, Metadata]:
    """For each model its run as a whole, and what this launch did about it."""
    models = [tally.model for tally in tallies]
    continued = [*filter(None, [launch.continue_run]), *launch.continue_runs.values()]
    given = {"models": models, "experiment": experiment, "continued": continued}
    found = {row.pop("model"): row for row in rows(query(db, "summaries/asked", given))}
    kept = rows_by_model(db, "predictions", models)
    return {
        tally.model: {
            **(Went.of(found[tally.model]).told(OF_REPLIES) if tally.model in found else {}),
            **tallied([tally]),
            "dagster/partition_row_count": kept[tally.model],
        }
        for tally in tallies
    }


def how_judging_went(
    db: duckdb.DuckDBPyConnection, tallies: Sequence[Tally], models: Sequence[str]
) -> Metadata:
    """The latest runs (of these models, if any) as a whole, and what this launch did about them."""
    (row,) = rows(query(db, "summaries/verdicts", {"models": list(models)}))
    return {**Went.of(row).told(OF_VERDICTS), **tallied(tallies)}


def how_analysing_went(reported: Sequence[Reported], scope: Scope) -> Metadata:
    """How many failures are whose, in which runs, and where the reports are."""
    lines = [one.counts for one in reported]
    written = [one.path for one in reported if one.path is not None]
    numbers = ("wrong", *map(str, Classification), "unexplained")
    return {
        "runs_analysed": len(reported),
        "reports": len(written),
        **{name: sum(line.get(name, 0) for line in lines) for name in numbers},
        "written": listed(map(str, written)),
        "edited_copies": listed(str(copy) for path in written for copy in edited_copies(path)),
        "by_run": markdown(
            [{**_named(one), **line} for one, line in zip(reported, lines, strict=True)]
        ),
        "passed_over": listed(one.sentence for one in scope.passed_over),
    }


def _named(reported: Reported) -> dict[str, str]:
    return {"model": reported.run["model"], "run": reported.run["run_id"][:8]}
