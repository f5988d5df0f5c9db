"""`evals view`: the server, from the first page to Ctrl-C."""

import os
import socket
from collections.abc import Callable
from contextlib import closing, suppress

import uvicorn
from uvicorn.config import LOGGING_CONFIG

from eval_pipeline.errors import MendableError
from eval_pipeline.logs import JsonLines, write_lines
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.app import build_app, no_queue
from eval_pipeline.web.metrics import ReadQueue

BEHIND_RUNS = 10
"""How nice it is to a run on the same machine."""
EVERYBODY = ""
"""The logger of all: what the server itself says is to be JSON too."""
GRACE_S = 2
KEEP_ALIVE_S = 75
"""Longer than clients keep idle connections, so that none is closed under a request."""


class ServingError(MendableError):
    """The server can not begin; the message says why."""


def listen(host: str, port: int) -> socket.socket:
    """Where readers come in; a port of 0 takes any that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        why = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise ServingError(
            f"Nobody can be served at {host}, port {port}: {why}. "
            "Choose another one: evals view --port 0 takes any that is free."
        ) from None
    return listener


class _Server(uvicorn.Server):
    """Says when it has begun: from then on Ctrl-C ends it in order."""

    def __init__(self, config: uvicorn.Config, begun: Callable[[], None]) -> None:
        super().__init__(config)
        self._begun = begun

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._begun()


def serve(
    settings: Settings,
    listener: socket.socket,
    begun: Callable[[], None],
    queue: ReadQueue = no_queue,
) -> None:
    """Serve until interrupted."""
    with suppress(OSError):
        os.nice(BEHIND_RUNS)
    as_json = settings.log == "json"
    if as_json:
        write_lines(JsonLines(settings.redact), EVERYBODY)
    config = uvicorn.Config(
        build_app(settings, queue),
        log_config=None if as_json else LOGGING_CONFIG,
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=GRACE_S,
        timeout_keep_alive=KEEP_ALIVE_S,
        lifespan="off",
    )
    with closing(listener), suppress(KeyboardInterrupt):
        _Server(config, begun).run(sockets=[listener])
