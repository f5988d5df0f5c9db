"""Absent keeps, null clears, and nothing is converted."""

import json
from typing import Any

import pytest
from customer import PatchError, apply_patch

ADDRESS = {"street": "Storgatan 1", "city": "Malmö", "postcode": "211 34"}


def a_customer(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Ada",
        "email": "ada@example.org",
        "credit_limit": 500,
        "tags": ["new", "web"],
        "address": dict(ADDRESS),
    } | fields


def patched(customer: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return apply_patch(customer, json.dumps(changes))


def test_an_empty_patch_changes_nothing() -> None:
    assert apply_patch(a_customer(), "{}") == a_customer()


def test_mentioned_fields_change_and_the_others_stay() -> None:
    assert patched(a_customer(), name="Eve", credit_limit=0) == a_customer(
        name="Eve", credit_limit=0
    )


def test_fields_that_are_none_stay_none() -> None:
    bare = a_customer(email=None, credit_limit=None, address=None, tags=[])

    assert patched(bare, name="Eve") == bare | {"name": "Eve"}


@pytest.mark.parametrize("field", ["email", "credit_limit", "address"])
def test_null_clears_a_field(field: str) -> None:
    assert patched(a_customer(), **{field: None}) == a_customer(**{field: None})


def test_tags_are_replaced_even_by_an_empty_list() -> None:
    assert patched(a_customer(), tags=["gold"])["tags"] == ["gold"]
    assert patched(a_customer(), tags=[])["tags"] == []


def test_an_empty_text_is_an_email_of_its_own() -> None:
    assert patched(a_customer(), email="")["email"] == ""


def test_an_address_is_updated_field_by_field() -> None:
    after = patched(a_customer(), address={"city": "Lund"})

    assert after == a_customer(address=ADDRESS | {"city": "Lund"})


def test_null_clears_within_the_address() -> None:
    after = patched(a_customer(), address={"postcode": None})

    assert after == a_customer(address=ADDRESS | {"postcode": None})


def test_an_empty_object_keeps_the_stored_address() -> None:
    assert patched(a_customer(), address={}) == a_customer()


def test_a_first_address_needs_no_postcode() -> None:
    after = patched(a_customer(address=None), address={"street": "Kajen 2", "city": "Ystad"})

    assert after["address"] == {"street": "Kajen 2", "city": "Ystad", "postcode": None}


@pytest.mark.parametrize("address", [{}, {"city": "Ystad"}, {"street": "Kajen 2"}])
def test_a_first_address_needs_street_and_city(address: dict[str, str]) -> None:
    with pytest.raises(PatchError):
        patched(a_customer(address=None), address=address)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": None},
        {"tags": None},
        {"address": {"street": None}},
        {"address": {"city": None}},
        {"name": ""},
        {"address": {"city": ""}},
        {"credit_limit": -1},
    ],
)
def test_values_outside_the_table_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PatchError):
        patched(a_customer(), **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"credit_limit": "5"},
        {"credit_limit": 5.0},
        {"credit_limit": True},
        {"name": 5},
        {"email": 5},
        {"tags": "web"},
        {"tags": ["web", 5]},
        {"address": "Storgatan 1"},
        {"address": {"postcode": 21134}},
    ],
)
def test_values_are_not_converted(changes: dict[str, Any]) -> None:
    with pytest.raises(PatchError):
        patched(a_customer(), **changes)


@pytest.mark.parametrize("changes", [{"phone": "1"}, {"address": {"country": "SE"}}])
def test_unknown_fields_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(PatchError):
        patched(a_customer(), **changes)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"name"', "{'name': 'Eve'}"])
def test_a_patch_that_is_no_json_object_is_refused(text: str) -> None:
    with pytest.raises(PatchError):
        apply_patch(a_customer(), text)
