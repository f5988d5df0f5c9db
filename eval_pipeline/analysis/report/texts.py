"""Texts of models, analysts and people as parts of a report: nothing in them is markup."""

import re

from eval_pipeline.analysis.records import Classification
from eval_pipeline.analysis.report.sections import unmarked
from eval_pipeline.results.tables.format import one_line
from eval_pipeline.untrusted import fenced, plain, printable

LONGEST_LINE, LONGEST_TEXT = 300, 2000
MOST_LINES, MOST_CHARACTERS = 60, 4000
# Some renderers make links of bare addresses, and formulas of what stands between two dollars.
_LINK = re.compile(r"(?:https?|ftp|mailto)(?=:)|www(?=\.)", re.IGNORECASE)
_DOLLAR = re.compile(r"\$")


def inline(text: object, longest: int = LONGEST_LINE) -> str:
    """The words of a text within a line of ours; never to stand at the beginning of one."""
    escaped = plain(printable(one_line(str(text), longest)))
    return _DOLLAR.sub(r"\\$", _LINK.sub(r"\g<0>\\", escaped))


def whose(classification: str) -> str:
    """A classification by its name, which is a word of ours and no markup."""
    known = classification in Classification.__members__
    return classification if known else inline(classification)


def snippet(text: str) -> str:
    """A piece of code or text as it is, cut where it is long."""
    lines = text[:MOST_CHARACTERS].replace("\r\n", "\n").split("\n")
    block = fenced(unmarked("\n".join(lines[:MOST_LINES])))
    is_cut = len(text) > MOST_CHARACTERS or len(lines) > MOST_LINES
    return f"{block}\n\nIt goes on; this is the beginning." if is_cut else block


def percent(share: float) -> str:
    """A share with its unit."""
    return f"{share * 100:.1f} %"


def counted(number: int, noun: str) -> str:
    """A number of things."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
