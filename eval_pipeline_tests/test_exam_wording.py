"""Texts that are the same but for how they are written, and texts that only look alike."""

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval_pipeline_tests.test_exam_rules import OPEN, RIGHT, WORDS, graded, in_form


@pytest.mark.parametrize(
    ("reference", "text", "correct"),
    [
        ("Paris", "paris", RIGHT),
        ("Paris", "PARIS.", RIGHT),
        ("Paris", "\u201cParis\u201d", RIGHT),
        ("Stra\u00dfe", "STRASSE", RIGHT),
        ("the Nile", "Nile", RIGHT),
        ("hexagon", "A hexagon", RIGHT),
        ("caf\u00e9", "cafe\u0301", RIGHT),
        ("Japan the land", "Japland", OPEN),
        ("ABC", "\uff21\uff22\uff23", RIGHT),
        ("2, 3, 9", "2,3,9", RIGHT),
        ("ash ta mi-eke", "ash  ta mi\u2011eke", RIGHT),
        ("$6\\pi-\\frac{4\\pi}{\\sqrt{10}}$", "\\(6\\pi - \\dfrac{4\\pi}{\\sqrt{10}}\\)", RIGHT),
        ("$\\sqrt{2}$ (\u2248 1.414)", "$\\sqrt{2}$", RIGHT),
        ("x^2", "x\u00b2", RIGHT),
        ("x^{12}", "$x^{12}$", RIGHT),
        ("first\n\nsecond", "first\n\nsecond", RIGHT),
        ("yes", "no", OPEN),
        ("Paris", "Paris, France", OPEN),
        ("Paris", "London", OPEN),
        ("A minor", "minor", OPEN),
        ("Co", "CO", OPEN),
        ("NaCl", "NACL", OPEN),
        ("aabb", "AABB", OPEN),
        ("Aabb", "aabb", OPEN),
        ("\\Gamma", "\\gamma", OPEN),
        ("(1, 2)", "[1, 2]", OPEN),
        ("A*", "A", OPEN),
        ("5!", "5", OPEN),
        ("1, 2, ...", "1, 2", OPEN),
        ("9 July 2024", "10 July 2024", OPEN),
        ("36.8 kN tension", "36.8 kN compression", OPEN),
        ("0012", "12", OPEN),
        ("__init__", "init", OPEN),
    ],
)
def test_text_is_right_when_only_its_writing_differs_and_is_never_wrong(
    reference: str, text: str, correct: bool | None
) -> None:
    verdict = graded(reference, in_form(text))

    assert (verdict.correct, verdict.certain) == (correct, correct is not None)


@settings(max_examples=100, deadline=None)
@given(reference=WORDS, other=WORDS, change=st.sampled_from([str.lower, str.upper, str.title]))
def test_the_case_of_words_never_changes_the_verdict(
    reference: str, other: str, change: Callable[[str], str]
) -> None:
    for text in (reference, other):
        assert (
            graded(reference, in_form(change(text))).correct
            is graded(reference, in_form(text)).correct
        )
