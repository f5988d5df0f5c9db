"""Files that a model made, into a folder: under no name that leads anywhere else."""

import errno
import os
import stat
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from eval_pipeline.records.coding import Files
from eval_pipeline.text import quoted

MAX_FILES = 200
MAX_FILE_BYTES = 1024**2
MAX_BYTES = 5 * 1024**2
MAX_NAME_BYTES = 120
MAX_PATH_BYTES = 300

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# What opening or making something comes to where something else is in its place.
_IN_THE_WAY = {errno.EEXIST, errno.ELOOP, errno.ENOTDIR, errno.EISDIR}


class UnsafePath(Exception):  # noqa: N818
    """Files that are not written, none of them, and why."""


@contextmanager
def private_folder(name: str) -> Iterator[Path]:
    """An empty folder that is gone afterwards.

    It is in one that nobody else can enter, so it may be open: other users can be given it.
    """
    with TemporaryDirectory(prefix="evals-") as private:
        folder = Path(private) / name
        folder.mkdir(mode=0o755)
        yield folder


def check_files(files: Mapping[str, str]) -> None:
    """Whether the files may be written; UnsafePath says the first reason why not."""
    if len(files) > MAX_FILES:
        raise UnsafePath(f"There are {len(files)} files, more than {MAX_FILES}.")
    for path in files:
        if reason := _refusal(path):
            raise UnsafePath(f"The path {quoted(path)} {reason}.")
    _check_apart(files)
    _check_sizes(files)


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Writes all of the files below a folder that exists, or none if one of them is unsafe."""
    check_files(files)
    top = os.open(folder, _FOLDER)
    try:
        for path, content in files.items():
            _write(top, path, content.encode())
    finally:
        os.close(top)


def _refusal(path: str) -> str | None:
    """Why a path is refused, as the end of a sentence."""
    if not path:
        return "is empty"
    if path.startswith("/"):
        return "is absolute"
    if not path.isprintable():
        return "has control characters or others that can not be seen"
    if "\\" in path or ":" in path:
        return "has a backslash or a colon"
    if len(path.encode()) > MAX_PATH_BYTES:
        return f"is longer than {MAX_PATH_BYTES} bytes"
    return next(filter(None, map(_name_refusal, path.split("/"))), None)


def _name_refusal(name: str) -> str | None:
    if name in ("", ".", ".."):
        return f"has a part that is {repr(name) if name else 'empty'}"
    if len(name.encode()) > MAX_NAME_BYTES:
        return f"has a part that is longer than {MAX_NAME_BYTES} bytes"
    if name.endswith((".", " ")) or name.startswith(" "):
        return "has a part that begins with a space or ends with a space or a dot"
    return None


def _check_apart(files: Mapping[str, str]) -> None:
    """On some disks names that differ in case, or in how an accent is spelled, are one name."""
    seen: dict[str, str] = {}
    for path in files:
        other = seen.setdefault(_folded(path), path)
        if other != path:
            raise UnsafePath(f"The paths {quoted(other)} and {quoted(path)} differ only in case.")
    for path in files:
        parts = _folded(path).split("/")
        for length in range(1, len(parts)):
            if file := seen.get("/".join(parts[:length])):
                raise UnsafePath(
                    f"The path {quoted(file)} is a file, and a folder of {quoted(path)}."
                )


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def _check_sizes(files: Mapping[str, str]) -> None:
    total = 0
    for path, content in files.items():
        try:
            size = len(content.encode())
        except UnicodeEncodeError:
            raise UnsafePath(f"The file {quoted(path)} has text that is not Unicode.") from None
        if size > MAX_FILE_BYTES:
            raise UnsafePath(f"The file {quoted(path)} is larger than {MAX_FILE_BYTES} bytes.")
        total += size
    if total > MAX_BYTES:
        raise UnsafePath(f"The files are larger than {MAX_BYTES} bytes together.")


def _write(top: int, path: str, content: bytes) -> None:
    *folders, name = path.split("/")
    try:
        with _below(top, folders) as parent:
            descriptor = os.open(name, _NEW_FILE, 0o644, dir_fd=parent)
    except OSError as error:
        if error.errno not in _IN_THE_WAY:
            raise
        raise UnsafePath(f"Where {quoted(path)} is to be written, something is already.") from None
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)


@contextmanager
def _below(top: int, folders: list[str]) -> Iterator[int]:
    """The innermost of the folders, each made if it is missing and never followed if a link."""
    current = os.dup(top)
    try:
        for name in folders:
            with suppress(FileExistsError):
                os.mkdir(name, 0o755, dir_fd=current)
            inner = os.open(name, _FOLDER, dir_fd=current)
            os.close(current)
            current = inner
        yield current
    finally:
        os.close(current)


IGNORED = ("__pycache__", "node_modules", "_generated")
"""What tools leave behind; hidden files are passed over as well."""


def is_ignored(name: str) -> bool:
    return name.startswith(".") or name in IGNORED


@dataclass
class FolderFiles:
    """The text files of a folder by their paths in it, and the problems there are with others."""

    files: Files = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    # Also of what is not among the files, because there is a problem with it.
    _seen: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, folder: Path, wanted: Callable[[str], bool] = lambda _: True) -> "FolderFiles":
        """All of the folder, or what is wanted of it; of too many files it reads none."""
        found = cls()
        entries = [entry for entry in found._entries(folder, "") if wanted(entry[0])]
        if len(entries) > MAX_FILES:
            found.problems.append(f"has {len(entries)} files, more than {MAX_FILES}")
            return found
        for path, file in sorted(entries):
            about = file.lstat()
            if not stat.S_ISREG(about.st_mode):
                found.problems.append(f"{path} is not a file")
            elif about.st_size > MAX_FILE_BYTES:
                found.problems.append(f"{path} is larger than {MAX_FILE_BYTES} bytes")
            else:
                try:
                    found.files[path] = file.read_bytes().decode("utf-8")
                except UnicodeDecodeError:
                    found.problems.append(f"{path} is not valid UTF-8")
        return found

    def text(self, name: str) -> str:
        """Return a file without byte order mark and outer blank lines; empty if it was not read."""
        return self.files.get(name, "").removeprefix("\ufeff").strip()

    def check(self, name: str, files: Files) -> None:
        """Note a problem if these files of the folder could not be written as an answer."""
        try:
            check_files(files)
        except UnsafePath as unsafe:
            self.problems.append(f"{name}: {str(unsafe).rstrip('.')}")

    def has(self, start: str) -> bool:
        """Whether there is anything of that name, or in the folder of that name and a slash."""
        return any(path == start or path.startswith(start) for path in self._seen)

    def below(self, folder: str) -> Files:
        """The files in one of its folders, by their paths in that."""
        start = f"{folder}/"
        return {
            path.removeprefix(start): text
            for path, text in self.files.items()
            if path.startswith(start)
        }

    def _entries(self, folder: Path, prefix: str) -> Iterator[tuple[str, Path]]:
        with os.scandir(folder) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        for entry in entries:
            path = prefix + entry.name
            if is_ignored(entry.name):
                continue
            if entry.is_symlink():
                self._seen.append(f"{path}/" if entry.is_dir() else path)
                self.problems.append(f"{path} is a link; put the file itself there")
            elif entry.is_dir(follow_symlinks=False):
                yield from self._entries(Path(entry.path), f"{path}/")
            else:
                self._seen.append(path)
                yield path, Path(entry.path)
