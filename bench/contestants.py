"""Who is measured in the asking tables, and how: raw clients, this engine, its peers."""

import sys
from collections.abc import Callable, Mapping
from functools import partial

from bench import peers
from bench.clients import CLIENTS
from bench.load import MODEL, Load
from bench.measuring import Taken, measured, reported
from bench.options import Options
from bench.peers import importable
from bench.project import PREDICTIONS, environment, write_settings
from bench.serving import LoadServer

RAW = "raw aiohttp"
ENGINE, COMMAND = "this engine, asking", "this engine, whole command"
Measure = Callable[[Load, LoadServer, Options], Taken]


def contestants(options: Options) -> Mapping[str, Measure | None]:
    """All of them by name; None for one that is not installed."""
    pythons = [sys.executable, *([options.peers] if options.peers else [])]
    found: dict[str, Measure | None] = {
        f"raw {client}": _with_python(pythons, module, partial(raw, client))
        for client, module in CLIENTS.items()
    }
    found |= {ENGINE: ask_alone, COMMAND: whole_command}
    for name, peer in peers.PEERS.items():
        found[name] = _with_python(pythons, peer.module, partial(peers.measure, peer))
    return found


def _with_python(
    pythons: list[str], module: str, measure: Callable[[str, Load, LoadServer, Options], Taken]
) -> Measure | None:
    for python in pythons:
        if importable(python, module):
            return partial(measure, python)
    return None


def raw(client: str, python: str, load: Load, server: LoadServer, options: Options) -> Taken:
    """A bare client, from its first request to its last reply."""
    numbers = (str(load.questions), str(load.at_once))
    command = [python, "-m", "bench.clients", client, server.base_url, *numbers]
    return reported(command, options.folder, environment())


def ask_alone(load: Load, server: LoadServer, options: Options) -> Taken:
    """`predict()` in a fresh process, from its call to its return."""
    with options.project_copy(load.questions) as project:
        write_settings(project, base_url=server.base_url, at_once=load.at_once)
        return reported([sys.executable, "-m", "bench.engine", MODEL], project, environment())


def whole_command(load: Load, server: LoadServer, options: Options) -> Taken:
    """The command as a user types it, from process start to exit."""
    with options.project_copy(load.questions) as project:
        write_settings(project, base_url=server.base_url, at_once=load.at_once)
        return measured([*PREDICTIONS, MODEL], project, environment())
