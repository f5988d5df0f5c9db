"""The simulated analyst: says by a fixed rule why an answer failed, from what it is shown."""

import json
import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from pydantic import JsonValue

ANALYST_MARK = "Simulated analyst:"
STRICT = ("lint", "typecheck")
"""Steps that may well ask for more than the task does."""
SHARE_OF_STRICT = 0.5
SHARE_OF_AMBIGUOUS = 0.1
_PROMPT = re.compile(r"You find out why [^<]*?-([0-9a-f]{16}),")
_LONG_WORD = re.compile(r"[a-z]{5,}")
_EXTRACTED = re.compile(r"\nThe answer that was found in the reply: (.*)\Z", re.DOTALL)
_ANSWER = re.compile(r"^[ \t]*answer:.*$", re.IGNORECASE | re.MULTILINE)
_LINES, _BEFORE = 8, 3
_COMPARED = 500
_LONGEST_ANSWER = 60

Draw = Callable[..., float]


def reply(prompt_text: str, draw: Draw) -> str | None:
    """The explanation as JSON text; None if the prompt does not ask for one."""
    if not (asked := _PROMPT.match(prompt_text)):
        return None
    return json.dumps(_explanation(_Shown(prompt_text, asked[1]), draw), ensure_ascii=False)


class _Shown:
    """The parts of the evidence, by name."""

    def __init__(self, text: str, token: str) -> None:
        self._text = text
        self.token = token

    def part(self, name: str) -> str:
        """What stands between the part's tags; nothing if there is no such part."""
        tag = f"{name}-{self.token}"
        _, _, rest = self._text.partition(f"\n<{tag}>\n")
        return rest.partition(f"\n</{tag}>")[0]

    @property
    def step(self) -> str | None:
        """The step that failed."""
        return self.part("failed_step").partition(":")[0] or None

    @property
    def is_question(self) -> bool:
        return f"\n<grader-{self.token}>\n" not in self._text

    @property
    def answer(self) -> str:
        """The code, or what stands in its place."""
        return self.part("files") or self.part("reply")


class _Told(NamedTuple):
    """What is wrong in a line, and the places that differ."""

    error: str
    model_snippet: str
    expected_snippet: str


def _explanation(shown: _Shown, draw: Draw) -> dict[str, JsonValue]:
    gap = _gap(shown)
    classification = _classification(shown, gap, draw)
    told = _of_question(shown) if shown.is_question else _of_code(shown)
    return {
        "failed_step": shown.step,
        "error": told.error,
        "reasoning": f"{ANALYST_MARK} it does not read code or answers, and says "
        f"{classification} by a fixed rule. No language model has looked into this failure.",
        "classification": classification,
        "model_snippet": told.model_snippet,
        "expected_snippet": told.expected_snippet,
        "gap": gap,
    }


def _of_question(shown: _Shown) -> _Told:
    reference, reply = shown.part("reference").strip(), shown.part("reply")
    found = _EXTRACTED.search(shown.part("verdict"))
    answered = f"Answered {_short(found[1])}" if found and found[1].strip() else "Gave no answer"
    lines = _ANSWER.findall(reply) or reply.strip().split("\n")
    error = f"{answered} where {_short(reference)} is expected."
    return _Told(error, lines[-1].strip(), _first(reference.split("\n")))


def _of_code(shown: _Shown) -> _Told:
    verdict = shown.part("verdict").strip().partition("\n")[0]
    error = verdict.removeprefix(f"{shown.step}: ") or "There was no answer."
    ours, theirs = (text.split("\n") for text in (shown.answer, shown.part("reference")))
    return _Told(error, *_unlike(ours[:_COMPARED], theirs[:_COMPARED]))


def _short(answer: str) -> str:
    words = " ".join(answer.split()).rstrip(".")
    return words if len(words) <= _LONGEST_ANSWER else f"{words[: _LONGEST_ANSWER - 2]} …"


def _classification(shown: _Shown, gap: str | None, draw: Draw) -> str:
    if gap is not None:
        return "KNOWN_GAP"
    if shown.step in STRICT and draw("strict", shown.token) < SHARE_OF_STRICT:
        return "OVERLY_STRICT"
    if draw("ambiguous", shown.token) < SHARE_OF_AMBIGUOUS:
        return "AMBIGUOUS_TASK"
    return "MODEL_FAULT"


def _gap(shown: _Shown) -> str | None:
    """The line of the known faults of which at least half the long words are in the failure."""
    told = " ".join(map(shown.part, ("verdict", "failed_step", "failed_tests"))).lower()
    for line in shown.part("gaps").split("\n"):
        words = set(_LONG_WORD.findall(line.lower()))
        if words and 2 * len([word for word in words if word in told]) >= len(words):
            return line.strip()
    return None


def _unlike(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, str]:
    """The first lines that differ, of either side; where one has none, those before the place."""
    blocks = SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes()
    differing = [block[1:] for block in blocks if block[0] != "equal"]
    one = [line for start, end, _, _ in differing for line in ours[start:end]]
    other = [line for _, _, start, end in differing for line in theirs[start:end]]
    place, _, their_place, _ = differing[0] if differing else (0, 0, 0, 0)
    return (
        _first(one) or _before(ours, place, other),
        _first(other) or _before(theirs, their_place, one),
    )


def _before(lines: Sequence[str], place: int, instead: Sequence[str]) -> str:
    """Nothing where there is a whole file instead."""
    if any(line.startswith("File ") for line in instead):
        return ""
    return "\n".join([line for line in lines[:place] if line.strip()][-_BEFORE:])


def _first(lines: Sequence[str]) -> str:
    return "\n".join([line for line in lines if line.strip()][:_LINES])
