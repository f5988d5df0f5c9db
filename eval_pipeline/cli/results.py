"""The `evals` commands about results: who is how good, and is that more than chance?"""

from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from eval_pipeline.cli import options
from eval_pipeline.cli.options import AsJson, RunOrLatest
from eval_pipeline.cli.output import print_json, report, say, show
from eval_pipeline.cli.project import open_warehouse, read_settings
from eval_pipeline.cli.show import NO_RUNS

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    import duckdb

    from eval_pipeline.results.comparisons import SideBySide


_SIDE = ("model", "experiment", "run_ids", "samples", "simulated")
_PAIRED = ("items", "difference", "standard_error", "better", "worse", "test", "p_value")
benchmark = typer.Typer(no_args_is_help=True, help="What is measured, version by version.")


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
    left_out, drafts = query(db, "summaries/left_out"), query(db, "summaries/draft")
    say(*("Not on it: {} ({}, run {}): {}".format(*line) for line in left_out.fetchall()))
    for runs, version in drafts.fetchall():
        say(f"Not on it: runs of the draft {version}: {runs}. To publish it: evals benchmark mint")


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
    by: Annotated[
        Literal["suite", "category", "input"] | None,
        typer.Option(help="Tell slices of the runs apart."),
    ] = None,
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
    from eval_pipeline.results.tables import metrics as tables

    wanted = tables.Wanted(run, models or (), experiment, judge, by=by or "all", moderate=moderate)
    with open_warehouse().reading() as db:
        found = tables.read_metrics(db, wanted)
    if as_json:
        shown = [{**row, "as_published": tables.published_of(row)} for row in found.rows]
        print_json({"metrics": shown if published else found.rows, "left_out": found.left_out})
        return
    show(*tables.metrics_tables(found, by=wanted.by, moderate=moderate))
    if published and found.rows:
        show(tables.published_table(found.rows))
    if not found.rows:
        narrowed = run or models or experiment or judge
        missing = "There is no such run: evals runs lists what there is." if narrowed else NO_RUNS
        say("No such run is complete." if found.left_out else missing)
    say(*tables.left_out_lines(found))
    if found.left_out:
        say("What was judged of these all the same: evals metrics --moderate")


def compare(
    a: Annotated[
        str,
        typer.Argument(
            help="A model on the leaderboard, a run, or model@run.", autocompletion=options.models
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

    experiment = experiment or read_settings().experiment
    with open_warehouse().reading() as db:
        found = compare_sides(db, a, b, experiment=experiment, judge=judge)
    table = differences_table(found, items) if found.differences and items else None
    report(_comparison(found), *comparison_lines(found), table, as_json=as_json)


@benchmark.command("mint")
def mint_version(
    name: Annotated[str | None, typer.Argument(help="Its name; by default v1, v2, …")] = None,
) -> None:
    """Publish the benchmark as it is now: the leaderboard starts anew, nothing is run."""
    from eval_pipeline.suites.benchmark import mint

    settings = read_settings(writes=True)
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
    from eval_pipeline.results.queries import query, rows

    return rows(query(db, f"summaries/{name}"))


def _comparison(found: "SideBySide") -> dict[str, object]:
    """Return all that is known of it, under the names of the table `comparisons`."""
    from eval_pipeline.results.stats.intervals import LEVEL

    paired, sides = found.compared.paired, {"a": found.a, "b": found.b}
    intervals = {"difference": paired.interval, "bootstrap": paired.bootstrap}
    p_value = paired.p_value if found.corrected is None else found.corrected
    return {
        "benchmark_version": found.a.benchmark_version,
        "judge": found.judge.judge,
        "judge_version": found.judge.version,
        "is_official": found.is_official,
        **{f"{name}_{x}": getattr(side, name) for x, side in sides.items() for name in _SIDE},
        "accuracy_a": found.compared.accuracy_a,
        "accuracy_b": found.compared.accuracy_b,
        **{name: getattr(paired, name) for name in _PAIRED},
        **{
            f"{name}_{end}": getattr(interval, end, None)
            for name, interval in intervals.items()
            for end in ("low", "high")
        },
        "standard_error_clustered": found.compared.standard_error_clustered,
        "p_adjusted": found.corrected,
        "significant": p_value < LEVEL,
        "pairs": found.pairs,
        "detectable": paired.detectable(found.pairs or 1),
        "differences": found.differences,
    }
