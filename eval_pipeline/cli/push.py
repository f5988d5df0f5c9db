"""The `evals` commands between deployments: runs are sent to one, and copied from one."""

from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli import completion
from eval_pipeline.cli.output import AsJson, print_json, say
from eval_pipeline.cli.places import open_warehouse, results

if TYPE_CHECKING:  # these take a moment to load that `evals --help` does without
    from pydantic import SecretStr

    from eval_pipeline.remote.pushing import Pushed
    from eval_pipeline.settings import Settings


def push(
    run: Annotated[
        str,
        typer.Argument(
            metavar="RUN",
            help="The first characters of its id, latest, or model@RUN.",
            autocompletion=completion.runs,
        ),
    ],
    to: Annotated[str, typer.Option("--to", metavar="URL", help="Where `evals view` serves.")],
    model: Annotated[
        list[str] | None,
        typer.Option("-m", "--model", help="Only of this model; may be given again."),
    ] = None,
    *,
    insecure_http: Annotated[
        bool, typer.Option("--insecure-http", help="Send the token unencrypted to another machine.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Send a run to another deployment, with its answers and verdicts; by token, in EVALS_TOKEN.

    What is there already is left as it is, so that it may be repeated, also if it was interrupted.
    """
    from eval_pipeline.journal import RUNS
    from eval_pipeline.journal.deployment import open_journal
    from eval_pipeline.remote.client import Server, checked_address
    from eval_pipeline.remote.pushing import chosen_runs, push_run
    from eval_pipeline.results.runs import find_runs
    from eval_pipeline.settings import Settings

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
    from eval_pipeline.environment import SettingsError
    from eval_pipeline.settings import TOKEN

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
    model: Annotated[
        list[str] | None,
        typer.Option("-m", "--model", help="Only of this model; may be given again."),
    ] = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Copy the runs of another deployment into this one; what is here stays as it is."""
    from eval_pipeline.environment import SettingsError
    from eval_pipeline.journal import RUNS, Journal
    from eval_pipeline.journal.deployment import refuse_production
    from eval_pipeline.remote.receiving import Receiver
    from eval_pipeline.remote.syncing import sync_run
    from eval_pipeline.settings import Settings

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
        sync_run(journal, here, name, run_id) for name, run_id in names if name in (model or [name])
    ]
    here.warehouse.publish()
    changed = [one for one in synced if one.is_changed]
    if as_json:
        print_json({"runs": len(synced), "changed": [one._asdict() for one in changed]})
        return
    for one in changed:
        say(
            f"{one.model}, run {one.run_id[:8]}: {one.predictions} new answers, "
            f"{one.judgements} new verdicts."
        )
    say(f"{len(synced)} runs of {source}, {len(changed)} of them with something new.")
