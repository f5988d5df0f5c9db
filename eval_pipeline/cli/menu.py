"""`evals` without a command: choose by keys what to run, see the command, start it."""

import typer


def menu(app: typer.Typer) -> None:
    """Asks what to do and does it, by calling the command that it shows."""
    raise NotImplementedError
