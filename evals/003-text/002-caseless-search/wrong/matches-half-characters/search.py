"""Search that ignores case and spelling."""

from unicodedata import normalize


def find_all(text: str, term: str) -> list[tuple[int, int]]:
    needle = _folded(term)
    if not needle:
        return []
    folded = ""
    origins: list[int] = []
    for index, char in enumerate(text):
        piece = _folded(char)
        folded += piece
        origins += [index] * len(piece)
    found: list[tuple[int, int]] = []
    start = folded.find(needle)
    while start >= 0:
        end = start + len(needle)
        found.append((origins[start], origins[end - 1] + 1))
        start = folded.find(needle, end)
    return found


def highlight(text: str, term: str, before: str, after: str) -> str:
    parts: list[str] = []
    position = 0
    for start, end in find_all(text, term):
        parts += [text[position:start], before, text[start:end], after]
        position = end
    return "".join([*parts, text[position:]])


def _folded(text: str) -> str:
    return normalize("NFD", text.casefold())
