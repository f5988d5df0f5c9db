"""The `evals import` commands: results of other programs."""

import typer

from eval_pipeline.cli import convex_scores

imports = typer.Typer(no_args_is_help=True, help="Take in the results of other programs.")
imports.command("convex-scores")(convex_scores.convex_scores)
