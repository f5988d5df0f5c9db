"""The load server as those who measure use it: started in a process of its own, asked, ended."""

import http.client
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from bench.measuring import BenchError
from bench.project import environment


@dataclass(frozen=True)
class ModelSeen:
    """What the server saw of one model's requests; times are seconds since 1970."""

    counts: dict[str, int]
    first_at: float
    last_at: float
    most_at_once: int
    replies: int

    @property
    def requests(self) -> int:
        return sum(self.counts.values())


@dataclass(frozen=True)
class LoadServer:
    """A running load server."""

    root_url: str

    @property
    def base_url(self) -> str:
        return f"{self.root_url}/v1"

    def total(self) -> int:
        """How many requests have arrived."""
        return int(self._get("/total"))

    def seen(self) -> dict[str, ModelSeen]:
        """Per model, what was asked how often, and when."""
        return {model: ModelSeen(**log) for model, log in self._get("/counts").items()}

    def first_at(self) -> float:
        """When the first request arrived."""
        return min(log.first_at for log in self.seen().values())

    def _get(self, path: str) -> Any:
        connection = http.client.HTTPConnection(urlsplit(self.root_url).netloc, timeout=60)
        try:
            connection.request("GET", path)
            return json.loads(connection.getresponse().read())
        finally:
            connection.close()


@contextmanager
def load_server(
    *,
    latency_s: float = 0.0,
    models: int = 1,
    slow: Sequence[str] = (),
    failing: Sequence[str] = (),
) -> Iterator[LoadServer]:
    """A fresh server that has counted nothing yet; it ends with the block."""
    words = ["--latency", str(latency_s), "--models", str(models), "--until-stdin-ends"]
    words += [f"--slow={pair}" for pair in slow] + [f"--failing={pair}" for pair in failing]
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.server", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    # Leaving the block closes its standard input, on which it ends, and waits for it.
    with process:
        if process.stdout is None or not (said := process.stdout.readline().strip()):
            raise BenchError("The load server did not start; what it said stands above.")
        yield LoadServer(said)
