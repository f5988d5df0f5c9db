"""What somebody may have meant by a name that nothing has."""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

MOST_NAMED = 5
LEAST_ALIKE = 0.5


def unknown(
    noun: str, name: str, known: Iterable[str] | Mapping[str, str], *, where: str = ""
) -> str:
    """Says in a sentence that there is none of that name, and which come closest.

    What can be spelled in several ways is known as a mapping from each of them to its name.
    """
    pairs = known.items() if isinstance(known, Mapping) else ((one, one) for one in known)
    spellings = {spelling.casefold(): one for spelling, one in pairs}
    close = _close(name.casefold(), list(spellings))
    named = list(dict.fromkeys(spellings[text] for text in close or spellings))[:MOST_NAMED]
    how = "closest" if close else "there are, for example"
    told = f"; {how}: {', '.join(named)}" if named else ""
    return f"There is no {noun} '{name}'{where}{told}."


def _close(wanted: str, spellings: list[str]) -> list[str]:
    parts = [text for text in spellings if wanted and wanted in text]
    # Several spellings may be of one name.
    return parts or get_close_matches(wanted, spellings, n=2 * MOST_NAMED, cutoff=LEAST_ALIKE)
