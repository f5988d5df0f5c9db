"""`dagster dev` that looks for backfills every second, not every 30: python -m …impatient dev."""

import sys
from collections.abc import Sequence
from subprocess import Popen
from typing import Any
from unittest.mock import patch

from dagster._cli import cli, dev
from dagster._daemon import controller
from dagster._daemon.cli import cli as daemon_cli
from dagster_shared.ipc import open_ipc_subprocess

MODULE = "eval_pipeline_tests.impatient"
INTERVAL_S = 1


def start(command: Sequence[str], **how: Any) -> "Popen[Any]":
    """Starts what `dagster dev` starts, but the daemon by this module."""
    ours = [MODULE if part == "dagster._daemon" else part for part in command]
    return open_ipc_subprocess(ours, **how)


if __name__ == "__main__":
    # Dagster has no setting for it.
    with (
        patch.object(dev, "open_ipc_subprocess", start),
        patch.object(controller, "DEFAULT_DAEMON_INTERVAL_SECONDS", INTERVAL_S),
    ):
        (cli if sys.argv[1] == "dev" else daemon_cli)()
