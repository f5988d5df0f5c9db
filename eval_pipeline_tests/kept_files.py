"""What is in a folder, to tell that nothing has changed."""

from pathlib import Path


def files_in(folder: Path) -> dict[str, bytes]:
    """Every file with its content, except for locks, which say nothing."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix not in (".lock", ".owner")
    }
