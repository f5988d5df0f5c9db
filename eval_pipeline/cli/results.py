"""The `evals` commands about results: who is how good, and is that more than chance?"""

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, RunOrLatest
from eval_pipeline.cli.output import open_warehouse, print_json, say, show
from eval_pipeline.cli.show import NO_RUNS

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    import duckdb

    from eval_pipeline.results.comparisons import Side, SideBySide
    from eval_pipeline.results.stats.calibration import Published
    from eval_pipeline.results.stats.intervals import Interval
    from eval_pipeline.results.tables.format import Row
    from eval_pipeline.results.tables.metrics import Wanted


MINT = "evals benchmark mint"
_PAIRED = ("items", "difference", "standard_error", "better", "worse", "test", "p_value")
benchmark = typer.Typer(no_args_is_help=True, help="What is measured, version by version.")


class By(StrEnum):
    """Which slices of a run are told apart."""

    SUITE = "suite"
    CATEGORY = "category"
    INPUT = "input"


def leaderboard(*, as_json: AsJson = False) -> None:
    """Print the leaderboard, and which runs are not on it."""
    with open_warehouse().reading() as db:
        if as_json:
            names = {"leaderboard": "leaderboard_in_full", "steps": "steps"}
            names |= {"left_out": "left_out", "draft": "draft"}
            print_json({key: _rows(db, name) for key, name in names.items()})
        else:
            _print_leaderboard(db)


def _print_leaderboard(db: "duckdb.DuckDBPyConnection") -> None:
    from eval_pipeline.results.queries import query
    from eval_pipeline.results.tables.leaderboard import leaderboard_tables, steps_table

    if rows := _rows(db, "leaderboard"):
        show(*leaderboard_tables(rows))
    else:
        say("No run of the published benchmark version is complete yet: evals run")
    if steps := _rows(db, "steps"):
        show(steps_table(steps))
    for line in query(db, "summaries/left_out").fetchall():
        say("Not on it: {} ({}, run {}): {}".format(*line))
    for runs, version in query(db, "summaries/draft").fetchall():
        say(f"Not on it: runs of the draft {version}: {runs}. To publish it: {MINT}")


def metrics(
    run: RunOrLatest = None,
    models: Annotated[
        list[str] | None,
        typer.Option("-m", "--model", help="Only this model, or part of its id; may be repeated."),
    ] = None,
    experiment: Annotated[
        str | None, typer.Option("-e", "--experiment", help="Only under this experiment.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Only by this judge's verdicts.")] = None,
    by: Annotated[By | None, typer.Option(help="Tell slices of the runs apart.")] = None,
    *,
    moderate: Annotated[
        bool, typer.Option("--moderate", help="Incomplete runs too, by what was judged.")
    ] = False,
    published: Annotated[
        bool,
        typer.Option(
            "--as-published",
            help="Also accuracy, ± and calibration error as Humanity's Last Exam computes them.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print accuracy with its interval, calibration, cost and speed of each model's latest run."""
    from eval_pipeline.results.tables.metrics import (
        Wanted,
        left_out_lines,
        metrics_tables,
        published_of,
        published_table,
        read_metrics,
    )

    wanted = Wanted(
        run, models or (), experiment, judge, by=by.value if by else "all", moderate=moderate
    )
    with open_warehouse().reading() as db:
        found = read_metrics(db, wanted)
    if as_json:
        shown = [{**row, "as_published": _dict(published_of(row))} for row in found.rows]
        print_json({"metrics": shown if published else found.rows, "left_out": found.left_out})
        return
    show(*metrics_tables(found, by=wanted.by, moderate=moderate))
    if published and found.rows:
        show(published_table(found.rows))
    if not found.rows:
        say(_why_no_numbers(wanted, found.left_out))
    for line in left_out_lines(found):
        say(line)
    if found.left_out:
        say("What was judged of these all the same: evals metrics --moderate")


def _dict(numbers: "Published | None") -> dict[str, float] | None:
    return None if numbers is None else numbers._asdict()


def _why_no_numbers(wanted: "Wanted", left_out: "Sequence[Row]") -> str:
    if left_out:
        return "No such run is complete."
    narrowed = wanted.run or wanted.models or wanted.experiment or wanted.judge
    return "There is no such run: evals runs lists what there is." if narrowed else NO_RUNS


def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="A model on the leaderboard, a run, or model@run.",
            autocompletion=options.models,
        ),
    ],
    b: Annotated[str, typer.Argument(help="The other one.", autocompletion=options.models)],
    experiment: Annotated[
        str | None, typer.Option("-e", "--experiment", help="Of models: under which experiment.")
    ] = None,
    judge: Annotated[str | None, typer.Option(help="Whose verdicts count.")] = None,
    items: Annotated[int, typer.Option(min=0, help="How many differing items to list.")] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """Compare two models or runs item by item: who is better, and is that more than chance?"""
    from eval_pipeline.results.comparisons import compare_sides
    from eval_pipeline.results.tables.comparison import comparison_lines, differences_table
    from eval_pipeline.settings.settings import Settings

    settings = Settings.from_env()
    with open_warehouse().reading() as db:
        experiment = experiment or settings.experiment
        found = compare_sides(db, a, b, experiment=experiment, judge=judge)
    if as_json:
        print_json(_comparison(found))
        return
    for line in comparison_lines(found):
        say(line)
    if found.differences and items:
        show(differences_table(found, items))


@benchmark.command("mint")
def mint_version(
    name: Annotated[str | None, typer.Argument(help="Its name; by default v1, v2, …")] = None,
) -> None:
    """Publish the benchmark as it is now: the leaderboard starts anew, nothing is run."""
    from eval_pipeline.journal.deployment import refuse_production
    from eval_pipeline.settings.settings import Settings
    from eval_pipeline.suites.benchmark import mint

    settings = Settings.from_env()
    refuse_production(settings)
    warehouse = open_warehouse(settings)
    version = mint(warehouse.journal, settings, name)
    warehouse.publish()
    items = sum(suite.items for suite in version.suites)
    say(
        f"{version.minted_as} is published: version {version.benchmark_version}, {items} items. "
        "Runs of other versions are kept, and no longer on the leaderboard."
    )


@benchmark.command("list")
def list_versions(*, as_json: AsJson = False) -> None:
    """Every version with its runs; the published one is what the leaderboard shows."""
    from eval_pipeline.results.tables.listing import versions_table

    with open_warehouse().reading() as db:
        if as_json:
            print_json(_rows(db, "versions_in_full"))
        else:
            show(versions_table(_rows(db, "versions")))


def _rows(db: "duckdb.DuckDBPyConnection", name: str) -> list[dict[str, Any]]:
    """A summary by column."""
    from eval_pipeline.results.queries import query, rows

    return rows(query(db, f"summaries/{name}"))


def _comparison(found: "SideBySide") -> dict[str, object]:
    """All that is known of it, under the names of the table `comparisons`."""
    from eval_pipeline.results.stats.intervals import LEVEL

    paired = found.compared.paired
    p_value = paired.p_value if found.corrected is None else found.corrected
    return {
        "benchmark_version": found.a.benchmark_version,
        "judge": found.judge.judge,
        "judge_version": found.judge.version,
        "is_official": found.is_official,
        **_side(found.a, "a"),
        **_side(found.b, "b"),
        "accuracy_a": found.compared.accuracy_a,
        "accuracy_b": found.compared.accuracy_b,
        **{name: getattr(paired, name) for name in _PAIRED},
        **_ends("difference", paired.interval),
        **_ends("bootstrap", paired.bootstrap),
        "standard_error_clustered": found.compared.standard_error_clustered,
        "p_adjusted": found.corrected,
        "significant": p_value < LEVEL,
        "pairs": found.pairs,
        "detectable": paired.detectable(found.pairs or 1),
        "differences": [one._asdict() for one in found.differences],
    }


def _side(side: "Side", letter: str) -> dict[str, object]:
    names = ("model", "experiment", "run_ids", "samples", "simulated")
    return {f"{name}_{letter}": getattr(side, name) for name in names}


def _ends(name: str, interval: "Interval | None") -> dict[str, float | None]:
    low, high = (None, None) if interval is None else (interval.low, interval.high)
    return {f"{name}_low": low, f"{name}_high": high}
