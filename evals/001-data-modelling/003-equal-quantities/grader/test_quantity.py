"""Equality, hashing and order agree with each other and with what is measured."""

import operator
from collections.abc import Callable
from decimal import Decimal, localcontext
from typing import Any

import pytest
from quantity import Quantity

ORDERINGS = [operator.lt, operator.le, operator.gt, operator.ge]


def q(amount: str, unit: str) -> Quantity:
    return Quantity(Decimal(amount), unit)


class Wildcard:
    """Equal to and after everything, as a matcher in somebody's tests would be."""

    def __eq__(self, other: object) -> bool:
        return True

    def __gt__(self, other: object) -> bool:
        return True


def test_it_keeps_what_was_given() -> None:
    quantity = q("1.50", "kg")

    assert (str(quantity.amount), quantity.unit, str(quantity)) == ("1.50", "kg", "1.50 kg")


@pytest.mark.parametrize("field", ["amount", "unit"])
def test_it_is_immutable(field: str) -> None:
    quantity = q("1", "kg")

    with pytest.raises(AttributeError):
        setattr(quantity, field, getattr(q("2", "g"), field))

    assert str(quantity) == "1 kg"


@pytest.mark.parametrize(
    ("amount", "unit"), [("1", "lb"), ("1", "KG"), ("1", ""), ("NaN", "g"), ("-Infinity", "m")]
)
def test_unknown_units_and_infinite_amounts_are_refused(amount: str, unit: str) -> None:
    with pytest.raises(ValueError):
        q(amount, unit)


EQUAL = [
    (("1.5", "kg"), ("1500", "g")),
    (("1", "t"), ("1000000000", "mg")),
    (("2.50", "m"), ("250", "cm")),
    (("1", "km"), ("1E+6", "mm")),
    (("1.0", "g"), ("1.00", "g")),
    (("0", "mg"), ("-0.0", "t")),
]


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_the_same_size_is_equal_in_every_unit(
    left: tuple[str, str], right: tuple[str, str]
) -> None:
    assert q(*left) == q(*right)
    assert operator.ne(q(*left), q(*right)) is False
    assert q(*left) <= q(*right) and q(*left) >= q(*right)
    assert not q(*left) < q(*right) and not q(*left) > q(*right)


@pytest.mark.parametrize(("left", "right"), EQUAL)
def test_equal_quantities_are_one_member_and_one_key(
    left: tuple[str, str], right: tuple[str, str]
) -> None:
    assert len({q(*left), q(*right)}) == 1
    assert {q(*left): "found"}[q(*right)] == "found"


def test_a_mass_never_equals_a_length() -> None:
    assert q("1", "g") != q("1", "m")
    assert q("0", "g") != q("0", "m")
    assert len({q("0", "g"), q("0", "m")}) == 2


def test_order_follows_size() -> None:
    masses = [q("2", "kg"), q("1", "mg"), q("0.001", "t"), q("1999", "g"), q("-3", "t")]

    assert [str(mass) for mass in sorted(masses)] == [
        "-3 t",
        "1 mg",
        "0.001 t",
        "1999 g",
        "2 kg",
    ]
    assert str(max(q("9", "cm"), q("0.1", "m"), q("99", "mm"))) == "0.1 m"


@pytest.mark.parametrize("compare", ORDERINGS)
def test_masses_and_lengths_have_no_order(compare: Callable[[Any, Any], bool]) -> None:
    with pytest.raises(TypeError):
        compare(q("1", "g"), q("1", "m"))


def test_comparisons_are_exact_with_any_number_of_digits() -> None:
    tail = "0" * 40 + "1"
    small, large = q(f"1.{tail}", "kg"), q(f"1000.{tail}", "g")

    assert large < small
    assert small != large and not small <= large
    assert q(f"1.{tail}", "kg") != q("1", "kg")
    assert small == q(f"1000.{tail[3:]}", "g")


def test_the_decimal_context_does_not_matter() -> None:
    with localcontext(prec=3):
        assert q("1.2345", "kg") == q("1234.5", "g")
        assert q("1.2345", "kg") > q("1234.4", "g")
        assert len({q("1.2345", "kg"), q("1234.4", "g")}) == 2


@pytest.mark.parametrize("other", [None, 1, "1 g", Decimal(1), ("1", "g")])
def test_other_values_are_unequal_and_have_no_order(other: object) -> None:
    assert q("1", "g") != other
    assert operator.eq(q("1", "g"), other) is False
    for compare in ORDERINGS:
        with pytest.raises(TypeError):
            compare(q("1", "g"), other)


def test_another_class_may_decide_the_comparison_itself() -> None:
    assert q("1", "g") == Wildcard()
    assert Wildcard() == q("1", "g")
    assert q("1", "g") < Wildcard()
