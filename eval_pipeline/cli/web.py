"""The `evals` commands about the web: serving results, and writing them as pages."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval_pipeline.cli.options import AsJson
from eval_pipeline.cli.output import complain, print_json, results, say

if TYPE_CHECKING:
    from eval_pipeline.defs.instance import Waiting
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
    from eval_pipeline.settings.settings import Settings
    from eval_pipeline.web.serve import listen, serve

    settings = Settings.from_env()
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
    from eval_pipeline.settings.settings import Settings
    from eval_pipeline.web.static_site import build as build_site

    settings = Settings.from_env()
    with results(settings):
        pass
    built = build_site(settings, folder, with_items=items)
    if as_json:
        print_json({"folder": str(folder), "files": built.files, "items": built.with_items})
        return
    left_out = "" if built.with_items else "; items have no pages of their own (--items)"
    say(f"{built.files} files in {folder}{left_out}. The first page: {folder / 'index.html'}")
