"""Brings files out of a sandbox: which ones it hands over, and what of that is believed."""

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath

MOST_BYTES = 32 * 2**20
LARGEST_FILE = 8 * 2**20
MOST_FILES = 2000


def named(paths: Iterable[str]) -> list[str]:
    """The paths as `find` spells them, with its wildcards made harmless; raises ValueError."""
    spelled = [f"./{_checked(path)}" for path in paths]
    return [path.translate({ord(char): f"\\{char}" for char in "\\*?["}) for path in spelled]


def unpack(archive: bytes, wanted: Iterable[str]) -> Mapping[str, bytes]:
    """The regular files of the archive that were asked for; an unfinished one ends where it ends.

    Whoever wrote the archive may have lied, so each name is looked at again.
    """
    asked = [PurePosixPath(_checked(path)) for path in wanted]
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive), mode="r:") as tar:
            for member in tar:
                path = _path_of(member, asked)
                if path is not None and (content := tar.extractfile(member)) is not None:
                    files[path] = content.read(LARGEST_FILE)
                if len(files) >= MOST_FILES:
                    break
    except (tarfile.TarError, OSError, ValueError, OverflowError):
        return files
    return files


def _path_of(member: tarfile.TarInfo, asked: Iterable[PurePosixPath]) -> str | None:
    if member.type != tarfile.REGTYPE or member.sparse or member.size > LARGEST_FILE:
        return None
    try:
        path = PurePosixPath(_checked(member.name))
    except ValueError:
        return None
    return str(path) if any(path.is_relative_to(name) for name in asked) else None


def _checked(name: str) -> str:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts or not name.isprintable():
        raise ValueError(f"{name!r} is no path inside of the work folder")
    return str(path)
