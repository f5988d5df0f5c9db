"""The `evals migrate` commands: the DuckDB file brought up to this version."""

from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import AsJson
from eval_pipeline.cli.output import complain, open_warehouse, print_json, say, show

if TYPE_CHECKING:  # these take a moment to load that `evals --help` does without
    from eval_pipeline.journal import Journal
    from eval_pipeline.migrating import Schema
    from eval_pipeline.warehouse import Warehouse

migrate = typer.Typer(no_args_is_help=True, help="The DuckDB file brought up to this version.")


@migrate.command("status")
def status(*, as_json: AsJson = False) -> None:
    """Tell which migrations the DuckDB file has seen, and the journal's format."""
    from eval_pipeline.migrating import schema_of

    warehouse = open_warehouse()
    schema = schema_of(warehouse.path)
    if as_json:
        print_json(_document(warehouse, schema))
        return
    _print_table(schema)
    for line in _sentences(warehouse, schema):
        say(line)


@migrate.command("up")
def up(
    to: Annotated[
        int | None,
        typer.Option("--to", min=1, metavar="N", help="Stop after the migration of this number."),
    ] = None,
    *,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Tell what would be done, and do nothing.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the DuckDB file up to date; interrupted, it goes on the next time.

    With a journal the file is built anew from it. A file that stands alone is migrated, and what
    it was before is kept beside it.
    """
    from eval_pipeline.deployment import refuse_production
    from eval_pipeline.migrating import migrate as migrate_file
    from eval_pipeline.migrating import pending
    from eval_pipeline.settings import Settings

    settings = Settings.from_env()
    if not dry_run:
        refuse_production(settings)
    warehouse = open_warehouse(settings)
    alone = warehouse.stands_alone()
    names = pending(warehouse, to) if dry_run else migrate_file(warehouse, to, tell=complain)
    if as_json:
        print_json({"migrations": names, "rebuilt": bool(names) and not alone, "done": not dry_run})
        return
    for line in _what_is_done(warehouse, names, alone=alone, dry_run=dry_run):
        say(line)


def _what_is_done(
    warehouse: "Warehouse", names: list[str], *, alone: bool, dry_run: bool
) -> list[str]:
    from eval_pipeline.migrating import backups, latest, number

    path, verb = warehouse.path, "would be" if dry_run else "is"
    if not names:
        return [f"There is nothing to do for {path}."]
    if not alone:
        return [f"{path} {verb} built from {warehouse.journal.root}, with schema {latest()}."]
    lines = [*names, f"{path} {verb} migrated to schema {number(names[-1])}."]
    if number(names[-1]) < latest():
        lines.append("Tables that are computed from others are empty until the last migration.")
    if not dry_run:
        kept = ", ".join(one.name for one in backups(path))
        lines.append(f"What it was before is kept beside it: {kept}")
    return lines


def _sentences(warehouse: "Warehouse", schema: "Schema") -> list[str]:
    from eval_pipeline.migrating import State, latest

    path = warehouse.path
    match schema.state:
        case State.NONE:
            about = f"{path}: there is none yet."
        case State.NEWER:
            about = f"{path}: written by a newer version of eval_pipeline: update."
        case State.BEHIND:
            about = f"{path}: schema {schema.number} of {latest()}. Next: evals migrate up"
        case State.CURRENT:
            about = f"{path}: schema {schema.number}, up to date."
    return [about, *_of_journal(warehouse)]


def _of_journal(warehouse: "Warehouse") -> list[str]:
    from eval_pipeline.journal import FORMAT
    from eval_pipeline.migrating import State, journal_state

    journal = warehouse.journal
    about = f"{journal.root}: format {journal.written_format()[:20]}"
    match journal_state(journal):
        case State.NONE if warehouse.stands_alone():
            return [f"{journal.root}: there is none, the file stands alone."]
        case State.NONE:
            return [f"{journal.root}: there is none yet."]
        case State.NEWER:
            return [f"{about}, and this version reads up to {FORMAT}: update eval_pipeline."]
        case State.BEHIND:
            return [f"{about}, which is read as it is; what is written next makes it {FORMAT}."]
        case State.CURRENT:
            return [f"{about}, up to date."]


def _document(warehouse: "Warehouse", schema: "Schema") -> dict[str, object]:
    from eval_pipeline.migrating import backups, latest

    return {
        "file": str(warehouse.path),
        "state": schema.state,
        "schema": schema.number,
        "latest": latest(),
        "applied": schema.applied,
        "missing": schema.missing,
        "backups": [str(one) for one in backups(warehouse.path)],
        "journal": _journal_document(warehouse.journal),
    }


def _journal_document(journal: "Journal") -> dict[str, object]:
    from eval_pipeline.journal import FORMAT
    from eval_pipeline.migrating import journal_state

    return {
        "folder": str(journal.root),
        "state": journal_state(journal),
        "format": journal.written_format()[:20] or None,
        "latest": FORMAT,
    }


def _print_table(schema: "Schema") -> None:
    from rich.table import Table

    table = Table("migration", "applied")
    for name in sorted({*schema.applied, *schema.known}):
        at = schema.applied.get(name)
        table.add_row(name, f"{at:%Y-%m-%d %H:%M}" if at else "not yet")
    show(table)
