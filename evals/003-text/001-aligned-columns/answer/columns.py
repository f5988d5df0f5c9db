"""Text in terminal cells: measured, fitted to a width, and set in columns."""

from itertools import zip_longest
from unicodedata import category, east_asian_width

ELLIPSIS = "…"


def cells(text: str) -> int:
    """How many cells a terminal needs for a text."""
    return sum(_cells_of(char) for char in text)


def fit(text: str, width: int) -> str:
    """The text in exactly `width` cells: filled up or cut."""
    if cells(text) > width:
        text = _beginning(text, width - cells(ELLIPSIS)) + ELLIPSIS
    return text + " " * (width - cells(text))


def table(rows: list[list[str]], max_width: int) -> str:
    """The rows as lines of aligned columns."""
    columns = zip_longest(*rows, fillvalue="")
    widths = [min(max_width, max(map(cells, column))) for column in columns]
    return "\n".join(_line(row, widths) for row in rows)


def _cells_of(char: str) -> int:
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in ("W", "F") else 1


def _beginning(text: str, room: int) -> str:
    """The longest beginning in the room, with all that takes no cell after its last character."""
    for index, char in enumerate(text):
        room -= _cells_of(char)
        if room < 0:
            return text[:index]
    return text


def _line(row: list[str], widths: list[int]) -> str:
    filled = row + [""] * (len(widths) - len(row))
    texts = [fit(text, width) for text, width in zip(filled, widths, strict=True)]
    return "  ".join(texts).rstrip(" ")
