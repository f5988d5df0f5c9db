"""Numbers and units: the same value in another writing, and what rounding allows."""

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from eval_pipeline_tests.test_exam_rules import OPEN, RIGHT, WRONG, graded, in_form


@pytest.mark.parametrize(
    ("reference", "text", "correct"),
    [
        ("42", "42.0", RIGHT),
        ("42", "+42", RIGHT),
        ("42", "about 42", RIGHT),
        ("42", "42.3", WRONG),
        ("42", "41.99", WRONG),
        ("42", "-42", WRONG),
        ("-2", "\u22122", RIGHT),
        ("1234567", "1,234,567", RIGHT),
        ("1234567", "1{,}234{,}567", RIGHT),
        ("1234567", "1\u2009234\u2009567", RIGHT),
        ("1234", "1,235", WRONG),
        ("1.234", "1,234", OPEN),
        ("1000", "10\u00b3", RIGHT),
        ("103", "10\u00b3", WRONG),
        ("1000", "10^{3}", RIGHT),
        ("0.0012", "1.2e-3", RIGHT),
        ("0.0012", "1.2 \\times 10^{-3}", RIGHT),
        ("0.0012", "1.2 \u00d7 10\u207b\u00b3", RIGHT),
        ("0.0012", "1.2 x 10^-3", RIGHT),
        ("0.5", ".5", RIGHT),
        ("916/55", "\\frac{916}{55}", RIGHT),
        ("-1/2", "-\\frac12", RIGHT),
        ("916/55", "1832/110", RIGHT),
        ("916/55", "917/55", WRONG),
        ("916/55", "17", WRONG),
        ("916/55", "16.65", OPEN),
        ("916/55", "16.66", WRONG),
        ("1/2", "\u00bd", RIGHT),
        ("21/2", "2\u00bd", OPEN),
        ("7/2", "3\\frac{1}{2}", OPEN),
        ("0.8896", "0.88957", RIGHT),
        ("0.8896", "0.89", RIGHT),
        ("0.8896", "0.9", OPEN),
        ("0.8896", "0.8897", WRONG),
        ("0.25", "0.3", OPEN),
        ("2.00", "2", RIGHT),
        ("14.05", "14", OPEN),
        ("14.05", "15", WRONG),
        ("0.00", "0.004", OPEN),
        ("3e8", "2.998e8", RIGHT),
        ("10", "5 or 10", OPEN),
        ("57", "5 = 7", OPEN),
        ("10", "10 \u00b1 1", OPEN),
        ("10", "x = 10", OPEN),
        ("10", "2^10", OPEN),
        ("10", "ten", OPEN),
        ("0.5", "1/0", OPEN),
    ],
)
def test_numbers_are_compared_by_value_and_stated_precision(
    reference: str, text: str, correct: bool | None
) -> None:
    verdict = graded(reference, in_form(text))

    assert (verdict.correct, verdict.certain) == (correct, correct is not None)


@pytest.mark.parametrize(
    ("reference", "text", "correct"),
    [
        ("5 m", "5 metres", RIGHT),
        ("5 m", "5 Meters", RIGHT),
        ("5 km", "5000 m", RIGHT),
        ("178 ms", "0.178 s", RIGHT),
        ("178 ms", "0.18 s", OPEN),
        ("2 kg", "2000 grams", RIGHT),
        ("3 kilometers", "3km", RIGHT),
        ("1.92 days", "46.1 h", RIGHT),
        ("429 \u00b5V", "429 \u03bcV", RIGHT),
        ("429 \u00b5V", "$429\\,\\mu\\mathrm{V}$", RIGHT),
        ("429 \u00b5V", "429~\\mu V", RIGHT),
        ("429 \u00b5V", "429 uV", RIGHT),
        ("429 \u00b5V", "430 \u00b5V", WRONG),
        ("429 \u00b5V", "429.3 \u00b5V", OPEN),
        ("429 \u00b5V", "429 mV", WRONG),
        ("429 \u00b5V", "429", OPEN),
        ("429 \u00b5V", "429 s", WRONG),
        ("429 \u00b5V", "429 blips", OPEN),
        ("21400 h", "21437 h", OPEN),
        ("21400 h", "22400 h", WRONG),
        ("40 minutes", "41 minutes", WRONG),
        ("40 minutes", "2400 s", RIGHT),
        ("5 MW", "5 mW", WRONG),
        ("167 \u00b0C", "167^\\circ\\text{C}", RIGHT),
        ("167 \u00b0C", "167 degrees Celsius", RIGHT),
        ("167 \u00b0C", "167\u00baC", RIGHT),
        ("167 \u00b0C", "167\u2103", RIGHT),
        ("167 \u00b0C", "167 C", OPEN),
        ("167 \u00b0C", "440 K", OPEN),
        ("50 Hz", "50 s^-1", OPEN),
        ("1 yr", "365 days", OPEN),
        ("30\u00b0", "30 degrees", RIGHT),
        ("3.14 rad", "179.9\u00b0", RIGHT),
        ("89.3%", "89.3 \\%", RIGHT),
        ("89.3%", "89.3 percent", RIGHT),
        ("89.3%", "0.893", OPEN),
        ("89.3%", "89.4%", WRONG),
        ("0.0755 mol/L", "75.5 mM", RIGHT),
        ("0.349 mA/cm\u00b2", "3.49 A/m^2", RIGHT),
        ("679 J/(K mol)", "679 J K^{-1} mol^{-1}", RIGHT),
        ("679 J/(K mol)", "679 J\u00b7K\u207b\u00b9\u00b7mol\u207b\u00b9", RIGHT),
        ("679 J/(K mol)", "679 J/K mol", OPEN),
        ("5.10 GeV/c", "5100 MeV/c", RIGHT),
        ("5.10 GeV/c", "5101 MeV/c", OPEN),
        ("5.10 GeV/c", "5.10e3 MeV/c", RIGHT),
        ("5.10 GeV/c", "5.10 GeV", WRONG),
        ("12 N m", "12 J", RIGHT),
        ("30 m/s", "30 meters per second", RIGHT),
        ("21.2 nC", "2.12 \\times 10^{-8} C", RIGHT),
        ("1.0 eV", "1.6e-19 J", RIGHT),
    ],
)
def test_units_are_converted_where_that_is_safe(
    reference: str, text: str, correct: bool | None
) -> None:
    verdict = graded(reference, in_form(text))

    assert (verdict.correct, verdict.certain) == (correct, correct is not None)


@settings(max_examples=150, deadline=None)
@given(
    value=st.integers(1_000, 999_999),
    off=st.integers(-40, 40),
    places=st.integers(1, 3),
)
def test_a_more_precise_number_is_right_exactly_when_it_rounds_to_the_reference(
    value: int, off: int, places: int
) -> None:
    # One digit more than the reference, and never on the edge, where both ways of rounding hold.
    assume(off % 10 != 5)
    reference = f"{value / 10**places:.{places}f}"
    finer = f"{(10 * value + off) / 10 ** (places + 1):.{places + 1}f}"

    assert graded(reference, in_form(finer)).correct is (abs(off) < 5)
