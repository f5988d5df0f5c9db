"""Thoughts that a server left in the text of a reply: told apart from the answer."""

import re
from typing import NamedTuple

_OPENING = re.compile(r"\s*<(think|thinking)>", re.IGNORECASE)
_CLOSING = re.compile(r"</(?:think|thinking)>", re.IGNORECASE)
# Some servers put the opening tag into the prompt, so that only the closing one comes back. It
# stands on a line of its own then; an answer that only speaks of the tag is left whole.
_CLOSING_LINE = re.compile(r"^[ \t]*</(?:think|thinking)>[ \t]*$", re.IGNORECASE | re.MULTILINE)


class Told(NamedTuple):
    """What a reply says, and what was thought before that."""

    answer: str
    thoughts: str


def tell_apart(text: str) -> Told:
    """Blocks of thought at the beginning are no answer, nor is one that is never closed."""
    thoughts: list[str] = []
    answer = text
    while opening := _OPENING.match(answer):
        closing = _CLOSING.search(answer, opening.end())
        if closing is None:
            return Told("", _joined([*thoughts, answer[opening.end() :]]))
        thoughts.append(answer[opening.end() : closing.start()])
        answer = answer[closing.end() :]
    if not thoughts and (closing := _CLOSING_LINE.search(answer)):
        thoughts, answer = [answer[: closing.start()]], answer[closing.end() :]
    return Told(answer.lstrip() if thoughts else text, _joined(thoughts))


def _joined(thoughts: list[str]) -> str:
    return "\n\n".join(filter(None, (thought.strip() for thought in thoughts)))
