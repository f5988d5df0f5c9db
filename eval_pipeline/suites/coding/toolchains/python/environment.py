"""The environment in which Python answers are checked: built once, then only read."""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from pydantic import ValidationError

from eval_pipeline.hashing import fingerprint
from eval_pipeline.processes import to_fetch_with
from eval_pipeline.records.base import Record
from eval_pipeline.suites.coding.sandbox.base import Mount
from eval_pipeline.suites.coding.toolchains.base import ToolchainError

HERE = Path(__file__).parent
ORACLE = HERE.parents[1] / "isolated_tests"
LOCK = HERE / "python.lock"
# Where commands see it, on every machine alike: paths in messages show nothing of the host.
ROOT = "/toolchain"
_MARKER = "ready.json"
# To be counted up when it is built in another way.
_BUILD = 1
_FILES = ("start.py", "inside.py", "mypy.ini", "pytest.ini")
_MYPY = ("-m", "mypy", "--no-sqlite-cache")


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

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """All that a command needs to run Python in it."""
        return (
            Mount(self.home / "env", f"{ROOT}/env"),
            Mount(self.home / "mypy", f"{ROOT}/mypy"),
            Mount(Path(self._ready_or_raise.base), f"{ROOT}/python"),
            Mount(ORACLE, f"{ROOT}/oracle"),
            *(Mount(HERE / name, f"{ROOT}/{name}") for name in _FILES),
        )

    def argv(self, target: str, *words: str) -> tuple[str, ...]:
        """The command line that runs a file, or a module of the oracle."""
        python = f"{ROOT}/python/bin/{_interpreter(Path()).name}"
        options = ("-S", "-P", "-s", "-B", f"{ROOT}/start.py")
        return (python, *options, f"{ROOT}/env", f"{ROOT}/oracle", target, *words)

    @property
    def variables(self) -> dict[str, str]:
        """The same order of sets and the same clock for every answer."""
        libraries = f"{ROOT}/python/lib"
        return {
            "PYTHONHASHSEED": "0",
            "PYTHONUTF8": "1",
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "TZ": "UTC",
        } | ({"LD_LIBRARY_PATH": libraries} if self._ready_or_raise.shared else {})

    @property
    def _ready_or_raise(self) -> Ready:
        if (ready := self.ready) is None:
            raise ToolchainError(
                f"The python toolchain in {self.home} is not prepared: "
                "evals toolchain prepare python"
            )
        return ready


def build(home: Path) -> None:
    """Builds an environment in an empty folder, or links to the files of an equal one beside."""
    ready = Ready(
        base=sys.base_prefix,
        shared=bool(sysconfig.get_config_var("Py_ENABLE_SHARED")),
        contents=_contents(),
    )
    if not _reuse(home, ready):
        _build(home)
    (home / _MARKER).write_text(ready.model_dump_json(), "utf-8")


def _contents() -> str:
    files = (LOCK, HERE / "mypy.ini", HERE / "warm.py")
    return fingerprint(_BUILD, sys.version, *(path.read_text("utf-8") for path in files))


def _reuse(home: Path, ready: Ready) -> bool:
    """Most versions of a toolchain differ in our code only, and building takes a minute."""
    for other in home.parent.glob("python-*"):
        if Environment(other).ready == ready:
            for name in ("env", "mypy"):
                shutil.copytree(other / name, home / name, symlinks=True, copy_function=os.link)
            return True
    return False


def _build(home: Path) -> None:
    env = home / "env"
    _run([sys.executable, "-m", "venv", "--without-pip", str(env)])
    _install(env)
    _warm_mypy(home)
    _compile(env)
    _forget_the_host(env)
    _make_read_only(home)


def _interpreter(base: Path) -> Path:
    version = platform.python_version_tuple()
    return base / "bin" / f"python{version[0]}.{version[1]}"


def _install(env: Path) -> None:
    """Only wheels: installing runs no code of a package."""
    options = ["--quiet", "--disable-pip-version-check", "--no-compile", "--only-binary", ":all:"]
    python = str(env / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", *options]
    _run([*pip, "--require-hashes", "--requirement", str(LOCK)], env=to_fetch_with())


def _warm_mypy(home: Path) -> None:
    """What mypy found out about the libraries, so that checking an answer takes no minute."""
    cache, config = str(home / "mypy"), str(HERE / "mypy.ini")
    python = str(home / "env" / "bin" / "python")
    options = ["--config-file", config, "--cache-dir", cache]
    _run([python, *_MYPY, *options, str(HERE / "warm.py")])
    # Mypy renews this file, which it can not where nothing may be written.
    (home / "mypy" / "missing_stubs").unlink(missing_ok=True)


def _compile(env: Path) -> None:
    """Never compared with its source again, for nothing changes here."""
    as_seen = ["-s", str(env), "-p", f"{ROOT}/env", "--invalidation-mode", "unchecked-hash"]
    _run([str(env / "bin" / "python"), "-m", "compileall", "-q", "-j", "0", *as_seen, str(env)])


def _forget_the_host(env: Path) -> None:
    """What says where it was built; `start.py` finds the packages without."""
    for path in ((env / "pyvenv.cfg"), *(env / "bin").glob("[Pp]ython*")):
        path.unlink()


def _make_read_only(home: Path) -> None:
    """For users other than ours as well, as whom the commands may run."""
    for path in home.rglob("*"):
        if not path.is_symlink():
            mode = path.stat().st_mode
            path.chmod((mode | 0o444 | (0o111 if path.is_dir() or mode & 0o100 else 0)) & ~0o222)


def _run(argv: Sequence[str], env: Mapping[str, str] = MappingProxyType({})) -> None:
    """Without our environment, which has keys in it."""
    done = subprocess.run(  # noqa: S603  (every word of it is ours)
        argv, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise ToolchainError(f"The python toolchain can not be prepared: {said}")
