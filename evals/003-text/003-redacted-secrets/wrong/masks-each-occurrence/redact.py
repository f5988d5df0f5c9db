"""Removes secrets from text, in every spelling that they may have there."""

import json
from collections.abc import Iterator
from urllib.parse import quote

MASK = "[redacted]"


def redact(text: str, secrets: list[str]) -> str:
    """The text with a mask in place of every run of secret characters."""
    spellings = {
        spelling for secret in secrets if secret.strip() for spelling in _spellings(secret)
    }
    places = sorted(place for spelling in spellings for place in _occurrences(text, spelling))
    pieces: list[str] = []
    shown_until = 0
    for start, end in places:
        # What overlaps the occurrence before needs no mask of its own.
        if start >= shown_until:
            pieces += [text[shown_until:start], MASK]
        shown_until = max(shown_until, end)
    return "".join([*pieces, text[shown_until:]])


def _spellings(secret: str) -> tuple[str, str, str]:
    return secret, json.dumps(secret)[1:-1], quote(secret, safe="")


def _occurrences(text: str, spelling: str) -> Iterator[tuple[int, int]]:
    """All of them, overlapping ones included, which `re` and `str.replace` would pass over."""
    start = text.find(spelling)
    while start >= 0:
        yield start, start + len(spelling)
        start = text.find(spelling, start + 1)
