"""Search that ignores case and spelling."""

import unicodedata


def find_all(text: str, term: str) -> list[tuple[int, int]]:
    haystack = unicodedata.normalize("NFC", text).lower()
    needle = unicodedata.normalize("NFC", term).lower()
    found: list[tuple[int, int]] = []
    start = haystack.find(needle) if needle else -1
    while start >= 0:
        found.append((start, start + len(needle)))
        start = haystack.find(needle, start + len(needle))
    return found


def highlight(text: str, term: str, before: str, after: str) -> str:
    for start, end in reversed(find_all(text, term)):
        text = text[:start] + before + text[start:end] + after + text[end:]
    return text
