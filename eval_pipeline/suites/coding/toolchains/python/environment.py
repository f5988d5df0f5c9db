"""The environment in which Python answers are checked: built once, then only read."""

import os
import platform
import shutil
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from eval_pipeline.hashing import fingerprint
from eval_pipeline.processes import to_fetch_with
from eval_pipeline.records.base import Record
from eval_pipeline.suites.coding.sandbox.base import Command, Limits, Mount
from eval_pipeline.suites.coding.toolchains.base import ToolchainError, run_tool

HERE = Path(__file__).parent
ISOLATED_TESTS = HERE.parents[1] / "isolated_tests"
LOCK = HERE / "python.lock"
# Where commands see it, on every machine alike: paths in messages show nothing of the host.
ROOT = "/toolchain"
_MARKER = "ready.json"
# To be counted up when it is built in another way.
_BUILD = 1
_FILES = ("start.py", "inside.py", "mypy.ini", "pytest.ini")
# The same order of sets and the same clock for every answer.
_VARIABLES = {
    "PYTHONHASHSEED": "0",
    "PYTHONUTF8": "1",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "TZ": "UTC",
}
_LIKELY = """
    abc argparse array ast asyncio base64 bisect builtins calendar codecs collections
    collections.abc concurrent.futures configparser contextlib contextvars copy csv ctypes
    dataclasses datetime decimal difflib email enum errno fnmatch fractions functools gc glob
    graphlib gzip hashlib heapq hmac html html.parser http http.client http.server importlib
    importlib.metadata inspect io ipaddress itertools json keyword logging logging.handlers math
    mimetypes multiprocessing numbers operator os pathlib pickle platform pprint queue random re
    sched secrets select selectors shelve shlex shutil signal socket sqlite3 ssl stat statistics
    string struct subprocess sys tempfile textwrap threading time timeit tokenize tomllib
    traceback types typing unicodedata unittest unittest.mock urllib.error urllib.parse
    urllib.request uuid warnings weakref xml.etree.ElementTree zipfile zlib zoneinfo anyio dagster
    duckdb httpx numpy numpy.typing pandas pydantic pytest sqlalchemy typing_extensions
"""
"""What answers are likely to import: mypy reads all of it once, when the toolchain is built."""


class Ready(Record):
    """What the environment was built on, which commands need beside it."""

    base: str
    shared: bool
    # Of all that decides what is in it: where that is equal it need not be built again.
    contents: str


@dataclass(frozen=True)
class Environment:
    """A prepared environment."""

    home: Path

    @property
    def ready(self) -> Ready | None:
        """What it was built on, if building it came to its end and that is still there."""
        try:
            ready = Ready.model_validate_json((self.home / _MARKER).read_bytes())
        except (OSError, ValidationError):
            return None
        return ready if _interpreter(Path(ready.base)).exists() else None

    def command(
        self, target: str, *words: str, limits: Limits, mounts: tuple[Mount, ...] = (), **more: Any
    ) -> Command:
        """A command that runs a file of ours or a module of the isolated tests."""
        if (ready := self.ready) is None:
            raise ToolchainError(
                f"The python toolchain in {self.home} is not prepared: "
                "evals toolchain prepare python"
            )
        python = f"{ROOT}/python/bin/{_interpreter(Path()).name}"
        options = ("-S", "-P", "-s", "-B", f"{ROOT}/start.py", f"{ROOT}/env", f"{ROOT}/oracle")
        ours = (
            Mount(self.home / "env", f"{ROOT}/env"),
            Mount(self.home / "mypy", f"{ROOT}/mypy"),
            Mount(Path(ready.base), f"{ROOT}/python"),
            Mount(ISOLATED_TESTS, f"{ROOT}/oracle"),
            *(Mount(HERE / name, f"{ROOT}/{name}") for name in _FILES),
        )
        return Command(
            (python, *options, target, *words),
            mounts=(*ours, *mounts),
            env=_VARIABLES | ({"LD_LIBRARY_PATH": f"{ROOT}/python/lib"} if ready.shared else {}),
            limits=limits,
            **more,
        )


def build(home: Path) -> None:
    """Builds an environment in an empty folder, or links to the files of an equal one beside."""
    pinned = (path.read_text("utf-8") for path in (LOCK, HERE / "mypy.ini"))
    ready = Ready(
        base=sys.base_prefix,
        shared=bool(sysconfig.get_config_var("Py_ENABLE_SHARED")),
        contents=fingerprint(_BUILD, sys.version, *pinned, _LIKELY),
    )
    # Most versions of a toolchain differ in our code only, and building takes a minute.
    others = home.parent.glob("python-*")
    if equal := next((other for other in others if Environment(other).ready == ready), None):
        for name in ("env", "mypy"):
            shutil.copytree(equal / name, home / name, symlinks=True, copy_function=os.link)
    else:
        _build(home)
    (home / _MARKER).write_text(ready.model_dump_json(), "utf-8")


def _build(home: Path) -> None:
    env = home / "env"
    python = str(env / "bin" / "python")
    run_tool("python", [sys.executable, "-m", "venv", "--without-pip", str(env)], {})
    # Only wheels: installing runs no code of a package.
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"]
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *options]
    run_tool("python", [*pip, "--require-hashes", "--requirement", str(LOCK)], to_fetch_with())
    _warm_mypy(home, python)
    # Never compared with its source again, for nothing changes here.
    as_seen = ["-s", str(env), "-p", f"{ROOT}/env", "--invalidation-mode", "unchecked-hash"]
    run_tool("python", [python, "-m", "compileall", "-q", "-j", "0", *as_seen, str(env)], {})
    # They say where it was built; `start.py` finds the packages without.
    for path in (env / "pyvenv.cfg", *(env / "bin").glob("[Pp]ython*")):
        path.unlink()
    _make_read_only(home)


def _interpreter(base: Path) -> Path:
    version = platform.python_version_tuple()
    return base / "bin" / f"python{version[0]}.{version[1]}"


def _warm_mypy(home: Path, python: str) -> None:
    """What mypy found out about the libraries, so that checking an answer takes no minute."""
    options = ["--config-file", str(HERE / "mypy.ini"), "--cache-dir", str(home / "mypy")]
    imports = f"import {', '.join(_LIKELY.split())}"
    run_tool("python", [python, "-m", "mypy", "--no-sqlite-cache", *options, "-c", imports], {})
    # Mypy renews this file, which it can not where nothing may be written.
    (home / "mypy" / "missing_stubs").unlink(missing_ok=True)


def _make_read_only(home: Path) -> None:
    """For users other than ours as well, as whom the commands may run."""
    for path in home.rglob("*"):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod((mode | 0o444 | (0o111 if path.is_dir() or mode & 0o100 else 0)) & ~0o222)
