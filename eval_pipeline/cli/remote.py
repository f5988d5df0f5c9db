"""The `evals` commands between deployments: push, sync, and the tokens of the API."""

from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import AsJson, OnlyModels, Run
from eval_pipeline.cli.output import complain, open_warehouse, print_json, results, say, show

if TYPE_CHECKING:  # imported late: `evals --help` does without these
    from pydantic import SecretStr

    from eval_pipeline.interop.remote.transfer import Pushed
    from eval_pipeline.journal.tokens import Token, Tokens
    from eval_pipeline.settings.settings import Settings


def push(
    run: Run,
    to: Annotated[str, typer.Option("--to", metavar="URL", help="Where `evals view` serves.")],
    model: OnlyModels = None,
    *,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Send the token unencrypted to another machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send a run to another deployment, with its answers and verdicts; by token, in EVALS_TOKEN.

    What is there already is left as it is, so that it may be repeated, also if it was interrupted.
    """
    from eval_pipeline.interop.remote.transfer import (
        Server,
        checked_address,
        chosen_runs,
        push_run,
    )
    from eval_pipeline.journal import RUNS
    from eval_pipeline.journal.deployment import open_journal
    from eval_pipeline.results.runs import find_runs
    from eval_pipeline.settings.settings import Settings

    settings, address = Settings.from_env(), checked_address(to, insecure_http=insecure_http)
    token, journal = _token(settings), open_journal(settings)
    with results(settings, RUNS) as db:
        chosen = chosen_runs(find_runs(db, run), model or [])
    pushed = []
    with Server(address, token, redact=settings.redact) as server:
        for one in chosen:
            pushed.append(push_run(journal, server, one.model, one.run_id))
            if not as_json:
                say(_told(pushed[-1]))
    if as_json:
        print_json([_document(one) for one in pushed])


def _token(settings: "Settings") -> "SecretStr":
    from eval_pipeline.settings.loading import SettingsError
    from eval_pipeline.settings.settings import TOKEN

    token = settings.key(TOKEN)
    if token is None:
        raise SettingsError(
            f"environment variable {TOKEN}: put a token of the server into it, or into .env "
            "(evals tokens create, where the server is)."
        )
    return token


def _told(pushed: "Pushed") -> str:
    opened = "opened there" if pushed.is_new else "known there"
    replies, verdicts = pushed.predictions, pushed.judgements
    return (
        f"{pushed.model}, run {pushed.run_id[:8]} ({opened}): {replies.records} answers to "
        f"{pushed.planned} planned, {replies.new} of them new; {verdicts.records} verdicts, "
        f"{verdicts.new} of them new."
    )


def _document(pushed: "Pushed") -> dict[str, object]:
    sent = {"predictions": pushed.predictions, "judgements": pushed.judgements}
    return {**pushed._asdict(), **{name: one._asdict() for name, one in sent.items()}}


def sync(
    source: Annotated[
        str, typer.Option("--from", metavar="DEPLOYMENT", help="One of [deployments].")
    ],
    model: OnlyModels = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Copy the runs of another deployment into this one; what is here stays as it is."""
    from eval_pipeline.interop.remote.receive import Receiver
    from eval_pipeline.interop.remote.transfer import copy_run
    from eval_pipeline.journal import RUNS, Journal
    from eval_pipeline.journal.deployment import refuse_production
    from eval_pipeline.settings.loading import SettingsError
    from eval_pipeline.settings.settings import Settings

    settings, other = Settings.from_env(), Settings.of_deployment(source)
    refuse_production(settings)
    if other.journal.resolve() == settings.journal.resolve():
        raise SettingsError(f"--from: {source} keeps its results where this deployment does.")
    if not other.journal.is_dir():
        raise SettingsError(f"--from: {other.journal} is not there: mount the folder of {source}.")
    journal = Journal(other.journal, read_only=True)
    here = Receiver(open_warehouse(settings))
    names = [(run.model, run.run_id) for run in journal.read(RUNS)]
    synced = [
        copy_run(journal, here, name, run_id) for name, run_id in names if name in (model or [name])
    ]
    here.warehouse.publish()
    changed = [one for one in synced if one.is_changed]
    if as_json:
        print_json({"runs": len(synced), "changed": [_changes(one) for one in changed]})
        return
    for one in changed:
        say(
            f"{one.model}, run {one.run_id[:8]}: {one.predictions.new} new answers, "
            f"{one.judgements.new} new verdicts."
        )
    say(f"{len(synced)} runs of {source}, {len(changed)} of them with something new.")


def _changes(copied: "Pushed") -> dict[str, object]:
    about = {"run_id": copied.run_id, "model": copied.model, "is_new": copied.is_new}
    return {**about, "predictions": copied.predictions.new, "judgements": copied.judgements.new}


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
    from eval_pipeline.journal.tokens import Tokens
    from eval_pipeline.settings.settings import Settings

    return Tokens(Settings.from_env().tokens)


def _print_table(found: "list[Token]") -> None:
    from rich.table import Table

    table = Table("name", "scopes", "created", "last used")
    for one in found:
        used = f"{one.last_used_at:%Y-%m-%d %H:%M}" if one.last_used_at else "never"
        table.add_row(one.name, ", ".join(one.scopes), f"{one.created_at:%Y-%m-%d %H:%M}", used)
    show(table)
