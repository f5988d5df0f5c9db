"""Search that ignores case and spelling, and answers in places of the original text."""

from itertools import accumulate, pairwise
from unicodedata import combining, normalize


def find_all(text: str, term: str) -> list[tuple[int, int]]:
    """The places at which whole characters of the text read the same as the term."""
    wanted = _folded(term)
    if not wanted:
        return []
    characters = _characters(text)
    folded = [_folded(character) for character in characters]
    # Where characters begin in the folded text, and where the same ones begin in the text.
    places = dict(zip(_starts(folded), _starts(characters), strict=True))
    haystack = "".join(folded)
    found: list[tuple[int, int]] = []
    at = haystack.find(wanted)
    while at >= 0:
        end = at + len(wanted)
        whole = at in places and end in places
        if whole:
            found.append((places[at], places[end]))
        at = haystack.find(wanted, end if whole else at + 1)
    return found


def highlight(text: str, term: str, before: str, after: str) -> str:
    """The text with marks around what was found."""
    pieces: list[str] = []
    position = 0
    for start, end in find_all(text, term):
        pieces += [text[position:start], before, text[start:end], after]
        position = end
    return "".join([*pieces, text[position:]])


def _folded(text: str) -> str:
    """Equal for texts that read the same: the canonical caseless match of Unicode."""
    return normalize("NFD", normalize("NFD", text).casefold())


def _characters(text: str) -> list[str]:
    starts = [index for index, char in enumerate(text) if index == 0 or not combining(char)]
    return [text[start:end] for start, end in pairwise([*starts, len(text)])]


def _starts(pieces: list[str]) -> list[int]:
    """Where each piece starts once they are joined, and where the last one ends."""
    return list(accumulate(map(len, pieces), initial=0))
