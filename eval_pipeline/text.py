"""Untrusted texts made harmless where they are shown, and names that are close to another."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

MOST_NAMED = 5
LEAST_ALIKE = 0.5
LONGEST_QUOTED = 60
_MARKUP = re.compile(r"([\\`*_\[\]<>|#~&])")
_FENCES = re.compile(r"`+|~+")
_ESCAPES = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # colours, cursor movements
    r"|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?"  # titles, links and other strings
    r"|\x1b[ -/]*[0-~]"
)
# Controls but for tab and line feed; what turns the reading direction around or cannot be seen.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]"
)
_CUT = "\n[... {} characters cut ...]\n"


def printable(text: str) -> str:
    """Replace what a terminal would obey: models and servers have a hand in many texts."""
    if text.isprintable():
        return text
    return "".join(one if one in "\n\t" or one.isprintable() else "\ufffd" for one in text)


def plain(text: str) -> str:
    """Escape an untrusted text so that Markdown shows it as it is."""
    return _MARKUP.sub(r"\\\1", text)


def fenced(text: str, language: str = "text") -> str:
    """Return a code block in Markdown that nothing in the untrusted text can end."""
    shown = printable(text.replace("\r\n", "\n")).strip("\n")
    fence = "`" * max(3, *(1 + len(run) for run in _FENCES.findall(shown)), 0)
    return f"{fence}{language}\n{shown}\n{fence}"


def quoted(text: str) -> str:
    """Return an untrusted text in quotes on one line, cut if it is long."""
    return repr(text if len(text) <= LONGEST_QUOTED else text[:LONGEST_QUOTED] + "…")


def unknown(
    noun: str, name: str, known: Iterable[str] | Mapping[str, str], *, where: str = ""
) -> str:
    """Say in a sentence that there is none of that name, and which names come closest.

    What can be spelled in several ways is known as a mapping from each of them to its name.
    """
    spellings = known if isinstance(known, Mapping) else {one: one for one in known}
    close = closest(name, spellings)
    named = (close or list(dict.fromkeys(spellings.values())))[:MOST_NAMED]
    how = "closest" if close else "there are, for example"
    told = f"; {how}: {', '.join(named)}" if named else ""
    return f"There is no {noun} '{name}'{where}{told}."


def listed(names: Sequence[str], most: int) -> str:
    """Return the first names in a line, and how many more there are."""
    left = len(names) - most
    return ", ".join(names[:most]) + (f" and {left} more" if left > 0 else "")


def closest(name: str, known: Mapping[str, str], alike: float = LEAST_ALIKE) -> list[str]:
    """Return the names of which a spelling contains the given name, or else looks like it."""
    wanted = name.casefold()
    spellings = {spelling.casefold(): one for spelling, one in known.items()}
    found = [text for text in spellings if wanted and wanted in text]
    # Several spellings may be of one name.
    found = found or get_close_matches(wanted, spellings, n=2 * MOST_NAMED, cutoff=alike)
    return list(dict.fromkeys(spellings[text] for text in found))


def clean(raw: bytes | str, limit: int) -> str:
    """Return the text without escapes and controls; of a long one the beginning and the end."""
    raw = raw.encode("utf-8", "replace") if isinstance(raw, str) else raw
    text = raw.decode("utf-8", errors="replace").replace("\r\n", "\n")
    return cut(_UNSEEN.sub("", _ESCAPES.sub("", text)), limit)


def cut(text: str, limit: int) -> str:
    """Shorten the text in its middle: errors stand at the end, their causes at the beginning."""
    if len(text) <= limit:
        return text
    note = _CUT.format(len(text) - limit)
    room = max(0, limit - len(note))
    head, tail = room - room // 2, room // 2
    return (text[:head] + note + text[len(text) - tail :])[:limit]
