"""A reply to an exam question graded by fixed rules: no model, no guess.

Letters and numbers can be right or wrong for certain; other text can only be certainly right, when
it is the reference but for how it is written. The rest is for a judge model. For numbers:
- Equal values are right; a whole number without unit as reference must be met exactly.
- Otherwise the coarser of the two decides: beyond half a unit of its last digit is wrong; within it
  is right up to 1 % of the reference, if both are rounded numbers. A whole number or a fraction
  against a rounded number is left open, and so is whatever lacks a unit that the other has.
A confidence without % is read as a percentage, but 0.85 could mean 85 % too and is left out.
"""

import re
from fractions import Fraction

from pydantic import Field

from eval_pipeline.records.base import Record, whole_characters
from eval_pipeline.records.item import ExamQuestion
from eval_pipeline.suites.exam.rules.normalize import (
    peeled,
    plain,
    same_text,
    visible,
    without_approximation,
)
from eval_pipeline.suites.exam.rules.quantities import Quantity, quantity

RULES_VERSION = "1"
"""Raised whenever a rule changes, so that verdicts of different rules are never mixed."""

_MAX_CANDIDATES = 20
_MAX_ANSWER = 2_000
_MOST = 100
_TOLERANCE = Fraction(1, 100)

_LABEL = re.compile(
    r"^[ \t>]{0,8}(?P<mark>[#*_-]{0,6})[ \t]{0,4}(?:(?:the|my) )?(?:(?:final|correct) ){0,2}"
    r"(?P<name>answer|confidence|explanation|reasoning|rationale|justification)(?: is)?"
    r"[ \t*_]{0,6}(?:[:\uff1a][*_]{0,3}|(?P<bare>$))",
    re.IGNORECASE | re.MULTILINE,
)
_CONFIDENCE = re.compile(
    r"\bconfidence[*_ ]{0,4}[:\uff1a][\s*_`$~\u2248]{0,9}"
    r"(?P<number>[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?)"
    r" ?(?P<percent>\\?%|percent|/ ?100\b)?(?P<rest>[^\n]{0,80})",
    re.IGNORECASE,
)
_AFTER_CONFIDENCE = re.compile(r"[\s*_`$).,;]*(?:\(.*)?")
_CLAIM = re.compile(
    r"(?:^|[.!?] )(?:(?:so|thus|hence|therefore),? )?"
    r"(?:the|my) (?:(?:final|correct) ){0,2}answer is:? ",
    re.IGNORECASE,
)
_BRACE = re.compile(r"\{|\}|\\(?:boxed ?\{|.)", re.DOTALL)


class RulesVerdict(Record):
    """The verdict of the rules on a reply; `correct` is None if they cannot decide."""

    correct: bool | None
    extracted_answer: str | None
    reason: str
    confidence: float | None = Field(ge=0, le=_MOST)
    certain: bool


_Finding = tuple[bool | None, str]
"""True if the reply is right, None if the rules cannot decide; and the reason."""


def grade_by_rules(question: ExamQuestion, reply: str) -> RulesVerdict:
    """The verdict of the rules on a reply; never raises, whatever the reply holds."""
    text = visible("\n".join(whole_characters(reply).splitlines()))
    candidates = _candidates(text)
    answer = candidates[-1] if candidates else ""
    correct, reason = _finding(question, answer, candidates)
    return RulesVerdict(
        correct=correct,
        extracted_answer=peeled(answer) or None,
        reason=reason,
        confidence=_confidence(text),
        certain=correct is not None,
    )


def _finding(question: ExamQuestion, answer: str, candidates: list[str]) -> _Finding:
    if not answer:
        return None, "The reply has no answer that the rules can find."
    # A text far longer than the reference is never the same; Unicode's own rules are slow on it.
    if max(map(len, candidates)) > max(_MAX_ANSWER, 2 * len(question.answer)):
        return None, "The answer is too long for the rules."
    others = set(candidates) - {answer}
    if len(others) >= _MAX_CANDIDATES or not all(
        _grade(question, answer, other)[0] for other in others
    ):
        return None, "The reply gives more than one answer."
    return _grade(question, question.answer, answer)


def _candidates(text: str) -> list[str]:
    """What the reply calls its answer, in order; nothing is picked out of running text."""
    labels = [label for label in _LABEL.finditer(text) if label["bare"] is None or label["mark"]]
    ends = [label.start() for label in labels[1:]] + [len(text)]
    labelled = [
        _before_confidence(text[label.end() : end])
        for label, end in zip(labels, ends, strict=False)
        if label["name"].lower() == "answer"
    ]
    return _boxes(text) + labelled or _last_claim(text)


def _before_confidence(answer: str) -> str:
    stated = _CONFIDENCE.search(answer)
    if stated:
        answer = answer[: stated.start()].rstrip(" \t\n(,;*_")
    answer = answer.strip()
    claim = _CLAIM.match(answer)
    return answer[claim.end() :] if claim else answer


def _boxes(text: str) -> list[str]:
    r"""What stands in each \boxed{} that is not inside another, found in one pass."""
    found: list[str] = []
    opened: list[int | None] = []
    depth = 0
    for brace in _BRACE.finditer(text):
        is_box = brace[0].startswith("\\boxed")
        if is_box or brace[0] == "{":
            opened.append(brace.end() if is_box else None)
            depth += is_box
        elif brace[0] == "}" and opened and (start := opened.pop()) is not None:
            depth -= 1
            if depth == 0:
                found.append(text[start : brace.start()].strip())
    return found


def _last_claim(text: str) -> list[str]:
    """What the last line says the answer is, to its end: earlier ones may be taken back."""
    lines = [line for line in text.splitlines() if line.strip() and not _CONFIDENCE.search(line)]
    claims = list(_CLAIM.finditer(lines[-1])) if lines else []
    return [lines[-1][claims[-1].end() :].strip()] if claims else []


def _confidence(text: str) -> float | None:
    stated = list(_CONFIDENCE.finditer(text))
    if not stated or not _AFTER_CONFIDENCE.fullmatch(stated[-1]["rest"]):
        return None
    number = float(stated[-1]["number"])
    ambiguous = not stated[-1]["percent"] and "." in stated[-1]["number"] and number <= 1
    return number if 0 <= number <= _MOST and not ambiguous else None


def _grade(question: ExamQuestion, reference: str, answer: str) -> _Finding:
    if question.answer_type == "multipleChoice" and (letter := _letter(question, reference)):
        return _grade_letters(letter, _letter(question, answer))
    wanted, given = quantity(reference), quantity(answer)
    if wanted and given:
        return _grade_numbers(wanted, given)
    if same_text(reference, answer) or same_text(without_approximation(reference), answer):
        return True, "The answer and the reference are the same text."
    return None, "The answer is another text than the reference but may mean the same."


def _grade_letters(wanted: str, given: str | None) -> _Finding:
    if given is None:
        return None, "The answer is not exactly one option letter."
    if given == wanted:
        return True, f"The answer is the right option, {wanted}."
    return False, f"The answer is option {given}, the right one is {wanted}."


_OPTION = re.compile(r"^[ \t]{0,8}\(?([A-Z])[.):][ \t]{1,8}(\S.*)$", re.MULTILINE)
_CHOICE = re.compile(r"(?:option |choice )?\(?([a-z])\)?[ .:,=)-]{0,3}(.*)", re.IGNORECASE)


def _options(question: str) -> dict[str, str]:
    """The text of each option; numbered statements before the last A are no options."""
    lines = _OPTION.findall(question)
    first = max((number for number, (letter, _) in enumerate(lines) if letter == "A"), default=0)
    return dict(lines[first:])


def _letter(question: ExamQuestion, answer: str) -> str | None:
    """The one option that the answer names, by its letter or by letter and text."""
    choice = _CHOICE.fullmatch(plain(answer).replace("**", ""))
    if not choice:
        return None
    letter, text, options = choice[1].upper(), choice[2], _options(question.question)
    if text:
        named = same_text(text, options.get(letter, ""))
    else:
        # Where another option's text is this very letter, it could mean either.
        named = not any(same_text(letter, options[other]) for other in options if other != letter)
    known = letter in options or question.answer.strip() not in options
    return letter if named and known else None


def _grade_numbers(wanted: Quantity, given: Quantity) -> _Finding:
    if wanted.unit is None and given.unit is None:
        return _grade_values(wanted, given, Fraction(1))
    if wanted.unit is None or given.unit is None:
        return None, "Only one of the answer and the reference has a unit."
    if wanted.unit.powers == given.unit.powers:
        return _grade_values(wanted, given, given.unit.scale / wanted.unit.scale)
    # A bare C is often meant as degrees Celsius.
    if wanted.unit.dimension == given.unit.dimension or "C" in (wanted.unit_text, given.unit_text):
        return None, "The units of the answer and the reference cannot be compared."
    return False, "The answer has a unit of another dimension than the reference."


def _grade_values(wanted: Quantity, given: Quantity, scale: Fraction) -> _Finding:
    gap = abs(wanted.value - given.value * scale)
    if not gap:
        return True, "The answer and the reference are the same number."
    texts = {wanted.number_text, given.number_text}
    if len(texts) > len({text.replace(",", ".") for text in texts}):
        return None, "It is not clear whether a comma separates thousands or decimals."
    must_be_equal = wanted.unit is None and (wanted.whole or (wanted.exact and given.exact))
    if must_be_equal or gap > max(_step(wanted), given.step * scale) / 2:
        return False, "The answer is another number than the reference."
    if wanted.exact or given.exact or gap > _TOLERANCE * abs(wanted.value):
        return None, "The answer may be the reference rounded more or less precisely."
    return True, "The answer is the same number as the reference within its rounding."


def _step(wanted: Quantity) -> Fraction:
    """What the reference may be rounded to: 21400 h to hundreds, by no more than 1 % though."""
    if not (wanted.whole and wanted.unit):
        return wanted.step
    digits = str(wanted.value.numerator)
    zeros = Fraction(10) ** (len(digits) - len(digits.rstrip("0")))
    return max(wanted.step, min(zeros, abs(wanted.value) * 2 * _TOLERANCE))
