"""The `evals` commands about the data themselves: SQL, files, and away with them."""

from typing import Annotated

import typer

from eval_pipeline.cli.output import say
from eval_pipeline.cli.places import open_warehouse


def query(sql: Annotated[str, typer.Argument(help="What to look for.")]) -> None:
    """Run read-only SQL on the results, also while a run writes."""
    raise NotImplementedError


def export(folder: Annotated[str, typer.Argument(help="Where to.")]) -> None:
    """Write the results to files."""
    raise NotImplementedError


def delete(run: Annotated[str, typer.Argument(help="Which run.")]) -> None:
    """Delete a run and all that belongs to it, for good."""
    raise NotImplementedError


def rebuild() -> None:
    """Build the DuckDB file anew from the journal; no model is asked anything."""
    warehouse = open_warehouse()
    warehouse.publish(force=True)
    say(f"{warehouse.path} is built from {warehouse.journal.root}.")


def schema() -> None:
    """Print the description of every table and column, as in docs/schema.md."""
    from eval_pipeline.reporting import schema_page

    typer.echo(schema_page(), nl=False)
