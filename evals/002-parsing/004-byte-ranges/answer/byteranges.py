"""From the range header of a download to the parts of the file that it asks for."""

import re
from typing import Final

Part = tuple[int, int]

_HEADER: Final = re.compile(r"bytes=(.*)", re.IGNORECASE | re.ASCII | re.DOTALL)
_ELEMENT: Final = re.compile(r"([0-9]*)-([0-9]*)")


class NotSatisfiable(Exception):
    """The header is well formed and selects nothing of the file."""


def resolve(header: str, size: int) -> list[Part] | None:
    """The parts to send, or None where the header is to be ignored."""
    match = _HEADER.fullmatch(header)
    if match is None:
        return None
    elements = [element.strip(" \t") for element in match[1].split(",")]
    bounds = [_bounds(element, size) for element in elements if element]
    if not bounds or None in bounds:
        return None
    parts = [part for part in bounds if part is not None and part[0] <= part[1]]
    if not parts:
        raise NotSatisfiable(f"{header!r} selects nothing of {size} bytes")
    return _merged(parts)


def _bounds(element: str, size: int) -> Part | None:
    """First and last byte, with the last before the first if there are none; None if malformed."""
    match = _ELEMENT.fullmatch(element)
    if match is None or element == "-":
        return None
    first, last = match.groups()
    if not first:
        return max(0, size - int(last)), size - 1
    if not last:
        return int(first), size - 1
    if int(last) < int(first):
        return None
    return int(first), min(int(last), size - 1)


def _merged(parts: list[Part]) -> list[Part]:
    merged: list[Part] = []
    for first, last in sorted(parts):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(merged[-1][1], last)
        else:
            merged.append((first, last))
    return merged
