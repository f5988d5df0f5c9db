"""Texts of somebody else's, made harmless where they are shown."""

import re

_MARKUP = re.compile(r"([\\`*_\[\]<>|#~&])")
_FENCES = re.compile(r"`+|~+")
_SHORTEST_FENCE = 3


def printable(text: str) -> str:
    """Without what a terminal would obey: models and servers have a hand in many texts."""
    if text.isprintable():
        return text
    return "".join(one if one in "\n\t" or one.isprintable() else "\ufffd" for one in text)


def plain(text: str) -> str:
    """A text of somebody else's that is to be read as it is, not as Markdown."""
    return _MARKUP.sub(r"\\\1", text)


def fenced(text: str, language: str = "text") -> str:
    """A code block in Markdown with a text of somebody else's, which nothing in it can end.

    `language` is ours, never theirs.
    """
    shown = printable(text.replace("\r\n", "\n")).strip("\n")
    longest = max(map(len, _FENCES.findall(shown)), default=0)
    fence = "`" * max(_SHORTEST_FENCE, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"
