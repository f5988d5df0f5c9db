"""The end of a file whose beginning was compacted elsewhere, before the end could be sent there."""

import os
from pathlib import Path

from eval_pipeline.journal.disk import swap_in, sync


def cut_off(path: Path, size: int) -> None:
    """Moves the lines behind the first `size` bytes into a file of their own, beside it.

    Killed between the two steps, the lines are there twice until this is done again.
    """
    with path.open("rb") as file:
        file.seek(size)
        tail = file.read()
    if lines := tail[: tail.rfind(b"\n") + 1]:
        apart = path.with_name(f"{path.stem}-from-{size}{path.suffix}")
        swap_in(apart, lines)
        sync(apart)
        sync(apart.parent)
    os.truncate(path, size)
    sync(path)
