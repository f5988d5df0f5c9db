"""A task's folder -> its text files: what is there, and what is wrong with it."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from eval_pipeline.coding.records import Files
from eval_pipeline.coding.writing import MAX_FILE_BYTES, MAX_FILES

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
        for path, entry in sorted(entries):
            found._read_file(path, entry)
        return found

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

    def _read_file(self, path: str, file: Path) -> None:
        about = file.lstat()
        if not stat.S_ISREG(about.st_mode):
            self.problems.append(f"{path} is not a file")
        elif about.st_size > MAX_FILE_BYTES:
            self.problems.append(f"{path} is larger than {MAX_FILE_BYTES} bytes")
        else:
            try:
                self.files[path] = file.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                self.problems.append(f"{path} is not valid UTF-8")
