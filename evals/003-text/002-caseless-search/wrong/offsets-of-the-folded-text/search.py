"""Search that ignores case and spelling."""

import re
from unicodedata import combining, normalize


def find_all(text: str, term: str) -> list[tuple[int, int]]:
    needle = _folded(term)
    if not needle:
        return []
    haystack = _folded(text)
    return [
        match.span()
        for match in re.finditer(re.escape(needle), haystack)
        if match.end() == len(haystack) or not combining(haystack[match.end()])
    ]


def highlight(text: str, term: str, before: str, after: str) -> str:
    parts: list[str] = []
    position = 0
    for start, end in find_all(text, term):
        parts += [text[position:start], before, text[start:end], after]
        position = end
    return "".join([*parts, text[position:]])


def _folded(text: str) -> str:
    return normalize("NFD", normalize("NFD", text).casefold())
