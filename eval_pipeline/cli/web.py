"""The `evals` commands about the web: serving results, writing pages, and tokens of the API."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from eval_pipeline.cli.options import AsJson
from eval_pipeline.cli.output import complain, print_json, report, say
from eval_pipeline.cli.project import read_settings, results

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from eval_pipeline.defs.instance import Waiting
    from eval_pipeline.journal.tokens import Tokens
    from eval_pipeline.settings.settings import Settings

site = typer.Typer(no_args_is_help=True, help="The results as static pages.")
LOOPBACK = "127.0.0.1"


def view(
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = LOOPBACK,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Port to listen on; 0 takes any free one.")
    ] = 8378,
) -> None:
    """Serve the results on the web until interrupted: leaderboard, runs, items, and the API."""
    from eval_pipeline.web.serve import listen, serve

    settings = read_settings()
    listener = listen(host, port)
    with results(settings):  # what was journalled by now is shown too
        pass
    if host != LOOPBACK and settings.web.public:
        complain("Whoever reaches this machine can read all results: see [web] in the settings.")
    at = f"[{host}]" if ":" in host else host
    address = f"http://{at}:{listener.getsockname()[1]}/"
    serve(settings, listener, lambda: say(f"Results: {address} (Ctrl-C ends it)"), _queue)


def _queue(settings: "Settings") -> "Waiting | None":
    """Read Dagster's queue; Dagster takes a second to load, so only when metrics are asked for."""
    from eval_pipeline.defs.instance import look_at_queue

    return look_at_queue(settings)


@site.command("build")
def build(
    folder: Annotated[Path, typer.Argument(help="Where to; pages of an earlier build give way.")],
    *,
    items: Annotated[
        bool | None,
        typer.Option(
            "--items/--no-items", help="A page for each reply; by default if there are up to 5,000."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the same pages as files that anyone can publish."""
    from eval_pipeline.web.static_site import build as build_site

    settings = read_settings()
    with results(settings):
        pass
    built = build_site(settings, folder, with_items=items)
    left_out = "" if built.with_items else "; items have no pages of their own (--items)"
    report(
        {"folder": str(folder), "files": built.files, "items": built.with_items},
        f"{built.files} files in {folder}{left_out}. The first page: {folder / 'index.html'}",
        as_json=as_json,
    )


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
    from eval_pipeline.journal.tokens import TokenError, TokenScope

    known = [str(one) for one in TokenScope]
    if not set(scope or []).issubset(known):
        raise TokenError(f"--scope: must be one of: {', '.join(known)}.")
    secret = _tokens().create(name, [TokenScope(one) for one in scope or []]).get_secret_value()
    if as_json:
        return print_json({"name": name, "scopes": scope, "token": secret})
    complain("This is shown once and kept nowhere; put it where it is needed as EVALS_TOKEN:")
    return say(secret)


@tokens.command("list")
def list_tokens(*, as_json: AsJson = False) -> None:
    """Every token with what it is for and when it was used last."""
    found, table = _tokens().list(), Table("name", "scopes", "created", "last used")
    for one in found:
        used = f"{one.last_used_at:%Y-%m-%d %H:%M}" if one.last_used_at else "never"
        table.add_row(one.name, ", ".join(one.scopes), f"{one.created_at:%Y-%m-%d %H:%M}", used)
    report(
        [one.model_dump(mode="json", exclude={"sha256"}) for one in found],
        table if found else "There is no token yet: evals tokens create NAME --scope write",
        as_json=as_json,
    )


@tokens.command("revoke")
def revoke(name: Name) -> None:
    """From now on nobody gets in with this token."""
    _tokens().revoke(name)
    say(f"The token {name} is revoked.")


def _tokens() -> "Tokens":
    from eval_pipeline.journal.tokens import Tokens

    return Tokens(read_settings().tokens)
