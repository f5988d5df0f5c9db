"""What an answer says that it depends on: it has to be there already, nothing is ever fetched."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from eval_pipeline.coding.toolchains.python.environment import LOCK

_LOCKED = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)\s*(?:;\s*([^\\]+?))?\s*\\?$", re.MULTILINE)
_COMMENT = re.compile(r"(^|\s)#.*$")
# In more than that, keys and versions can be nested so that reading them takes minutes.
_MOST_BYTES = 16 * 1024


@cache
def available() -> Mapping[str, str]:
    """Version by name of everything that the environment has."""
    found = _LOCKED.findall(LOCK.read_text("utf-8"))
    return {
        canonicalize_name(name): version
        for name, version, marker in found
        if not marker or Marker(marker).evaluate()
    }


def problem(folder: Path) -> str | None:
    """Why what the answer in this folder asks for can not be had."""
    files = [*filter(Path.is_file, (*folder.glob("requirements*.txt"), folder / "pyproject.toml"))]
    if sum(path.stat().st_size for path in files) > _MOST_BYTES:
        return f"What it depends on takes more than {_MOST_BYTES} bytes to say."
    try:
        return next(filter(None, map(_missing, _asked_for(folder))), None)
    except (ValueError, RecursionError) as error:
        return f"pyproject.toml can not be read: {error}"


def _asked_for(folder: Path) -> Iterator[str]:
    for path in filter(Path.is_file, sorted(folder.glob("requirements*.txt"))):
        lines = path.read_text("utf-8", "replace").splitlines()
        yield from filter(None, (_COMMENT.sub("", line).strip() for line in lines))
    if (path := folder / "pyproject.toml").is_file():
        project = tomllib.loads(path.read_text("utf-8")).get("project")
        wanted = project.get("dependencies") if isinstance(project, dict) else None
        yield from map(str, wanted if isinstance(wanted, list) else ())


def _missing(line: str) -> str | None:
    try:
        return _lacking(Requirement(line))
    except (ValueError, KeyError):  # all that packaging raises, and numbers with too many digits
        return f"{line[:200]!r} is not a name with a version; nothing else can be depended on."


def _lacking(wanted: Requirement) -> str | None:
    if wanted.marker and not wanted.marker.evaluate({"extra": ""}):
        return None
    version = available().get(canonicalize_name(wanted.name))
    if version is None or wanted.url:
        names = ", ".join(sorted(available()))
        return f"{wanted.name} is not available in this environment; available are: {names}"
    if not wanted.specifier.contains(version, prereleases=True):
        return f"{wanted.name} is available only as {version}, which is not {wanted.specifier}."
    return None
