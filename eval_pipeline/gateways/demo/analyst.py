"""The simulated analyst, which explains by a fixed rule why an answer failed."""

import json
import re
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher

from pydantic import JsonValue

ANALYST_MARK = "Simulated analyst:"
# Steps that may well ask for more than the task does.
_STRICT = ("lint", "typecheck")
_SHARE_OF_STRICT = 0.5
_SHARE_OF_AMBIGUOUS = 0.1
_PROMPT = re.compile(r"You find out why [^<]*?-([0-9a-f]{16}),")
_LONG_WORD = re.compile(r"[a-z]{5,}")
_EXTRACTED = re.compile(r"\nThe answer that was found in the reply: (.*)\Z", re.DOTALL)
_ANSWER = re.compile(r"^[ \t]*answer:.*$", re.IGNORECASE | re.MULTILINE)
_LINES, _BEFORE = 8, 3
_COMPARED = 500
_LONGEST_ANSWER = 60

Draw = Callable[..., float]


def reply(prompt_text: str, draw: Draw) -> str | None:
    """Return the explanation as JSON text; None if the prompt does not ask for one."""
    if not (asked := _PROMPT.match(prompt_text)):
        return None
    return json.dumps(_explanation(_Evidence(prompt_text, asked[1]), draw), ensure_ascii=False)


class _Evidence:
    """The parts of the evidence in a prompt, by name; empty where there is no such part."""

    def __init__(self, text: str, token: str) -> None:
        self._text = text
        self.token = token
        self.step = self.part("failed_step").partition(":")[0] or None
        self.is_question = f"\n<grader-{token}>\n" not in text

    def part(self, name: str) -> str:
        tag = f"{name}-{self.token}"
        _, _, rest = self._text.partition(f"\n<{tag}>\n")
        return rest.partition(f"\n</{tag}>")[0]


def _explanation(evidence: _Evidence, draw: Draw) -> dict[str, JsonValue]:
    gap = _gap(evidence)
    classification = _classification(evidence, gap, draw)
    error, ours, theirs = (_of_question if evidence.is_question else _of_code)(evidence)
    return {
        "failed_step": evidence.step,
        "error": error,
        "reasoning": f"{ANALYST_MARK} it does not read code or answers, and says "
        f"{classification} by a fixed rule. No language model has looked into this failure.",
        "classification": classification,
        "model_snippet": ours,
        "expected_snippet": theirs,
        "gap": gap,
    }


def _of_question(evidence: _Evidence) -> tuple[str, str, str]:
    """Return the error, and the two snippets that differ."""
    reference, reply = evidence.part("reference").strip(), evidence.part("reply")
    found = _EXTRACTED.search(evidence.part("verdict"))
    answered = f"Answered {_short(found[1])}" if found and found[1].strip() else "Gave no answer"
    lines = _ANSWER.findall(reply) or reply.strip().split("\n")
    error = f"{answered} where {_short(reference)} is expected."
    return error, lines[-1].strip(), _first(reference.split("\n"))


def _of_code(evidence: _Evidence) -> tuple[str, str, str]:
    """Return the error, and the two snippets that differ."""
    verdict = evidence.part("verdict").strip().partition("\n")[0]
    error = verdict.removeprefix(f"{evidence.step}: ") or "There was no answer."
    answer = evidence.part("files") or evidence.part("reply")
    ours, theirs = (text.split("\n") for text in (answer, evidence.part("reference")))
    return error, *_unlike(ours[:_COMPARED], theirs[:_COMPARED])


def _short(answer: str) -> str:
    words = " ".join(answer.split()).rstrip(".")
    return words if len(words) <= _LONGEST_ANSWER else f"{words[: _LONGEST_ANSWER - 2]} …"


def _classification(evidence: _Evidence, gap: str | None, draw: Draw) -> str:
    if gap is not None:
        return "KNOWN_GAP"
    if evidence.step in _STRICT and draw("strict", evidence.token) < _SHARE_OF_STRICT:
        return "OVERLY_STRICT"
    if draw("ambiguous", evidence.token) < _SHARE_OF_AMBIGUOUS:
        return "AMBIGUOUS_TASK"
    return "MODEL_FAULT"


def _gap(evidence: _Evidence) -> str | None:
    """Return the first known fault of which at least half the long words are in the failure."""
    failure = " ".join(map(evidence.part, ("verdict", "failed_step", "failed_tests"))).lower()
    for line in evidence.part("gaps").split("\n"):
        words = set(_LONG_WORD.findall(line.lower()))
        if words and 2 * len([word for word in words if word in failure]) >= len(words):
            return line.strip()
    return None


def _unlike(ours: Sequence[str], theirs: Sequence[str]) -> tuple[str, str]:
    """Return the first lines that differ; where one side has none, those before the place."""
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
    """Return the last lines before the place; nothing where there is a whole file instead."""
    if any(line.startswith("File ") for line in instead):
        return ""
    return "\n".join([line for line in lines[:place] if line.strip()][-_BEFORE:])


def _first(lines: Sequence[str]) -> str:
    return "\n".join([line for line in lines if line.strip()][:_LINES])
