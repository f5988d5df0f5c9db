"""A cluster on this machine: PostgreSQL, Redis, Dagster's processes and workers, all of them real.

Dagster is configured by what deploy/celery ships, and installed from deploy/requirements.lock.
"""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eval_pipeline.journal.locks import lock_owner, running_run_ids
from eval_pipeline_tests.conftest import UNWANTED
from eval_pipeline_tests.project import ROOT
from eval_pipeline_tests.webserver import Webserver, a_free_port, wait_for

BIN = ROOT / ".venv-cluster" / "bin"
DEPLOY = ROOT / "deploy" / "celery"
HOST = "127.0.0.1"
PLACES = 3
"""How many runs a worker takes at a time."""
UNWANTED_HERE = {*UNWANTED, "EVALS_SETTINGS", "DAGSTER_MODULE_NAME", "PYTHONPATH"}


@dataclass(frozen=True)
class Cluster:
    """Whom to ask, and which process is whose."""

    webserver: Webserver
    journal: Path
    workers: Mapping[str, int]
    environment: Mapping[str, str]

    def at_work(self) -> dict[str, str]:
        """The runs that are alive, each with the worker that has it."""
        names = {session: name for name, session in self.workers.items()}
        found = {}
        for run_id in running_run_ids(self.journal):
            with suppress(ValueError, OSError):  # it has just ended
                process = int(lock_owner(self.journal, run_id).split()[1])
                found[run_id] = names[os.getsid(process)]
        return found

    def kill(self, worker: str) -> None:
        """The worker and all of its processes are gone at once, as with its machine."""
        for process in _members(session := self.workers[worker]):
            os.kill(process, signal.SIGKILL)
        wait_for(lambda: not _members(session))

    def count(self, query: str) -> int:
        """The number that PostgreSQL answers a query with."""
        command = [str(_postgres_tools() / "psql"), "--no-psqlrc", "-At", "-c", query]
        return int(subprocess.check_output(command, env=self.environment))


@contextmanager
def cluster(project: Path, folder: Path, *workers: str) -> Iterator[Cluster]:
    """The processes of a cluster that share the project's folder; all end with the block."""
    home, ports = folder / "home", (a_free_port(), a_free_port())
    shutil.copytree(DEPLOY, home)
    with ExitStack() as running:
        environment = {
            **{name: value for name, value in os.environ.items() if name not in UNWANTED_HERE},
            **running.enter_context(postgres(folder)),
            **running.enter_context(_redis(folder)),
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "DAGSTER_HOME": str(home),
            "EVALS_CODE_HOST": HOST,
            "EVALS_CODE_PORT": str(ports[0]),
        }

        sessions: list[int] = []

        def start(name: str, *command: str) -> int:
            log = folder / f"{name}.log"
            process = _running([BIN / command[0], *command[1:]], project, environment, log)
            sessions.append(running.enter_context(process).pid)
            return sessions[-1]

        location = ("-m", "eval_pipeline.definitions", "-h", HOST, "-p", str(ports[0]))
        start("code", "dagster", "api", "grpc", *location)
        wait_for(lambda: _listens(ports[0]))
        workspace = ("-w", str(home / "workspace.yaml"))
        start("daemon", "dagster-daemon", "run", *workspace)
        start("webserver", "dagster-webserver", "-h", HOST, "-p", str(ports[1]), *workspace)
        started = {name: start(name, *_worker(name, home)) for name in workers}
        webserver = Webserver(f"http://{HOST}:{ports[1]}")
        running.callback(webserver.close)
        running.callback(_end_all, sessions)
        wait_for(webserver.answers)
        yield Cluster(webserver, project / "data" / "journal", started, environment)


def _worker(name: str, home: Path) -> Sequence[str]:
    """Each run in a process of its own, as everywhere else."""
    start = ("dagster-celery", "worker", "start", "-A", "dagster_celery.app")
    places = ("--concurrency", str(PLACES), "--max-tasks-per-child", "1")
    return (*start, "-y", str(home / "worker.yaml"), "-n", name, "--", *places)


@contextmanager
def postgres(parent: Path) -> Iterator[dict[str, str]]:
    """A server with its own data and port; yields how to reach it."""
    # Started by root, it must be somebody else, who has no access to the folders of the tests.
    who: dict[str, Any] = {} if os.geteuid() else {"user": "postgres", "group": "postgres"}
    password, port, tools = secrets.token_hex(), str(a_free_port()), _postgres_tools()
    with tempfile.TemporaryDirectory(prefix="evals-postgres-") as name:
        folder, kept = Path(name), Path(name, "password")
        kept.write_text(password)
        for path in (folder, kept):
            if who:
                shutil.chown(path, **who)
        data = ("-D", str(folder / "data"))
        made = ("-U", "evals", "-A", "scram-sha-256", "--pwfile", str(kept), "--no-locale")
        subprocess.run(
            [tools / "initdb", *data, *made, "-E", "UTF8"],
            cwd=folder,
            check=True,
            stdout=subprocess.DEVNULL,
            **who,
        )
        options = ("-c", f"listen_addresses={HOST}", "-c", "unix_socket_directories=")
        command = [str(tools / "postgres"), *data, "-p", port, *options]
        with _running(command, folder, {}, parent / "postgres.log", **who):
            wait_for(lambda: _listens(int(port)))
            url = f"postgresql+psycopg2://evals:{password}@{HOST}:{port}/postgres"
            yield {
                "EVALS_POSTGRES_URL": url,
                "PGHOST": HOST,
                "PGPORT": port,
                "PGUSER": "evals",
                "PGPASSWORD": password,
                "PGDATABASE": "postgres",
            }


@contextmanager
def _redis(folder: Path) -> Iterator[dict[str, str]]:
    """The same for a broker that keeps nothing on disk."""
    password, port = secrets.token_hex(), a_free_port()
    config = folder / "redis.conf"
    config.write_text(
        f'bind {HOST}\nport {port}\nrequirepass {password}\nsave ""\nappendonly no\ndir {folder}\n'
    )
    with _running(["redis-server", config], folder, {}, folder / "redis.log"):
        wait_for(lambda: _listens(port))
        yield {"EVALS_BROKER_URL": f"redis://:{password}@{HOST}:{port}/0"}


def _postgres_tools() -> Path:
    """Where Debian has the programs of the newest PostgreSQL that is installed."""
    found = Path("/usr/lib/postgresql").glob("*/bin")
    return max(found, key=lambda path: int(path.parent.name))


@contextmanager
def _running(
    command: Sequence[str | Path], folder: Path, env: Mapping[str, str], log: Path, **who: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that leads a session; with the block, all that are in it end."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=env or None,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            **who,
        )
    try:
        yield process
    finally:
        _end_all([process.pid])
        process.wait()


def _end_all(sessions: Sequence[int]) -> None:
    """Ends all processes of these sessions together, each time less gently."""
    for how, patience_s in ((signal.SIGINT, 1.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 5.0)):
        end = time.monotonic() + patience_s
        for member in _all_members(sessions):
            with suppress(ProcessLookupError):
                os.kill(member, how)
        while _all_members(sessions) and time.monotonic() < end:
            time.sleep(0.1)


def _all_members(sessions: Sequence[int]) -> list[int]:
    return [member for session in sessions for member in _members(session)]


def _members(session: int) -> list[int]:
    """The processes of a session, by their ids; not those that wait to be buried."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state = (path / "stat").read_text().rpartition(") ")[2]
            if state[0] != "Z" and os.getsid(int(path.name)) == session:
                found.append(int(path.name))
    return found


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection((HOST, port), timeout=1):
        return True
    return False
