"""The `evals tokens` commands: who may read and write over the API."""

from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.output import AsJson, complain, print_json, say, show

if TYPE_CHECKING:  # these take a moment to load that `evals --help` does without
    from eval_pipeline.remote.tokens import Token, Tokens

tokens = typer.Typer(no_args_is_help=True, help="Who may read and write over the API.")
Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is, such as ci.")]


@tokens.command("create")
def create(
    name: Name,
    scope: Annotated[
        list[str] | None,
        typer.Option("--scope", help="read, write or production; may be given again."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Make a token and print its secret, this once: only a hash of it is kept."""
    from eval_pipeline.remote.tokens import TokenError, TokenScope

    known = [str(one) for one in TokenScope]
    for one in scope or []:
        if one not in known:
            raise TokenError(f"--scope: must be one of: {', '.join(known)}.")
    secret = _tokens().create(name, [TokenScope(one) for one in scope or []]).get_secret_value()
    if as_json:
        print_json({"name": name, "scopes": scope, "token": secret})
        return
    complain("This is shown once and kept nowhere; put it where it is needed as EVALS_TOKEN:")
    say(secret)


@tokens.command("list")
def list_tokens(*, as_json: AsJson = False) -> None:
    """Every token with what it is for and when it was used last."""
    found = _tokens().list()
    if as_json:
        print_json([one.model_dump(mode="json", exclude={"sha256"}) for one in found])
    elif found:
        _print_table(found)
    else:
        say("There is no token yet: evals tokens create NAME --scope write")


@tokens.command("revoke")
def revoke(name: Name) -> None:
    """From now on nobody gets in with this token."""
    _tokens().revoke(name)
    say(f"The token {name} is revoked.")


def _tokens() -> "Tokens":
    from eval_pipeline.remote.tokens import Tokens
    from eval_pipeline.settings import Settings

    return Tokens(Settings.from_env().tokens)


def _print_table(found: "list[Token]") -> None:
    from rich.table import Table

    table = Table("name", "scopes", "created", "last used")
    for one in found:
        used = f"{one.last_used_at:%Y-%m-%d %H:%M}" if one.last_used_at else "never"
        table.add_row(one.name, ", ".join(one.scopes), f"{one.created_at:%Y-%m-%d %H:%M}", used)
    show(table)
