"""Users that nobody is: one for each command, so that its processes are counted apart."""

import secrets
from pathlib import Path

_ALL = 2**32 - 1
# Where no distribution has users, and where no container engine puts its own.
_FIRST, _COUNT = 1_900_000_000, 200_000_000


def fresh_uid(mapping: Path = Path("/proc/self/uid_map")) -> int:
    """A user id that hardly anything else on this machine has at the moment."""
    inside, _, count = max(_ranges(mapping), key=lambda extent: extent[2], default=(0, 0, _ALL))
    if count >= _ALL:
        return _FIRST + secrets.randbelow(_COUNT)
    # In a container there are fewer; the upper half of them is the least likely to be somebody's.
    return inside + count // 2 + secrets.randbelow(max(1, count - count // 2))


def _ranges(mapping: Path) -> list[tuple[int, int, int]]:
    try:
        lines = mapping.read_text("ascii").splitlines()
    except OSError:
        return []
    return [(int(a), int(b), int(c)) for a, b, c in map(str.split, lines)]
