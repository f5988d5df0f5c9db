"""What reading the events of a service that grows must and must not do."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from events import Charge, EventError, Refund, Unknown, parse_event

CHARGE = {
    "type": "charge",
    "id": "ev_1",
    "amount": "12.50",
    "created": "2025-03-09T14:30:00+02:00",
}
REFUND = {"type": "refund", "id": "ev_2", "amount": "3", "chargeId": "ch_9", "reason": "late"}


def faults(event: Any) -> list[str]:
    with pytest.raises(EventError) as caught:
        parse_event(event if isinstance(event, str) else json.dumps(event))
    return list(caught.value.fields)


def without(event: dict[str, Any], field: str) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != field}


def test_a_charge_is_read() -> None:
    event = parse_event(json.dumps(CHARGE))
    assert isinstance(event, Charge)
    assert (event.id, event.amount) == ("ev_1", Decimal("12.50"))
    assert event.created == datetime(2025, 3, 9, 12, 30, tzinfo=UTC)


def test_moments_are_held_in_utc() -> None:
    for text in ("2025-03-09T14:30:00+02:00", "2025-03-09T12:30:00Z", "2025-03-09T07:00:00-05:30"):
        created = parse_event(json.dumps({**CHARGE, "created": text})).created
        assert created.isoformat() == "2025-03-09T12:30:00+00:00"


def test_a_refund_is_read_with_or_without_a_reason() -> None:
    event = parse_event(json.dumps(REFUND))
    assert isinstance(event, Refund)
    assert (event.id, event.amount, event.charge_id) == ("ev_2", Decimal(3), "ch_9")
    assert event.reason == "late"
    assert parse_event(json.dumps(without(REFUND, "reason"))).reason is None
    assert parse_event(json.dumps({**REFUND, "reason": None})).reason is None


def test_fields_that_are_new_are_ignored() -> None:
    event = parse_event(json.dumps({**CHARGE, "chargeId": 5, "payload": [1], "fee": {"cents": 1}}))
    assert isinstance(event, Charge)
    assert event.id == "ev_1"


@pytest.mark.parametrize("kind", ["dispute", "Charge", "charge ", ""])
def test_an_event_of_a_new_type_is_kept_whole(kind: str) -> None:
    raw = {"type": kind, "id": "ev_3", "amount": 5, "payload": {"deep": [None, 1.5, "é"]}}
    event = parse_event(json.dumps(raw))
    assert isinstance(event, Unknown)
    assert (event.id, event.type) == ("ev_3", kind)
    assert event.payload == raw


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (without(CHARGE, "amount"), ["amount"]),
        ({**CHARGE, "amount": None}, ["amount"]),
        ({"type": "charge", "id": ""}, ["amount", "created", "id"]),
        ({**REFUND, "amount": "x", "chargeId": None}, ["amount", "chargeId"]),
        ({"charge_id": "ch_9", **without(REFUND, "chargeId")}, ["chargeId"]),
        ({"type": "refund"}, ["amount", "chargeId", "id"]),
    ],
)
def test_a_known_type_with_faults_is_an_error_that_names_all_of_them(
    event: dict[str, Any], fields: list[str]
) -> None:
    assert faults(event) == fields


@pytest.mark.parametrize(
    "amount",
    [12.5, 12, True, "0", "0.00", "-1.00", "+1", "1.", ".5", "1.234", "1e3", " 1", "1\n", "1,00"]
    + ["NaN", "Infinity", "", "1_000", "٣", ["1"]],
)
def test_an_amount_is_a_text_of_digits(amount: object) -> None:
    assert faults({**CHARGE, "amount": amount}) == ["amount"]


def test_amounts_keep_every_digit() -> None:
    amount = "90071992547409931234567890123456.07"
    assert parse_event(json.dumps({**CHARGE, "amount": amount})).amount == Decimal(amount)


@pytest.mark.parametrize(
    "created",
    ["2025-03-09T14:30:00", "2025-03-09", "yesterday", "", "1741523400", 1741523400, 1.5, None],
)
def test_a_moment_is_a_text_with_an_offset(created: object) -> None:
    assert faults({**CHARGE, "created": created}) == ["created"]


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        ({**CHARGE, "id": 7}, ["id"]),
        ({**REFUND, "chargeId": 7}, ["chargeId"]),
        ({**REFUND, "chargeId": ""}, ["chargeId"]),
        ({**REFUND, "reason": 7}, ["reason"]),
        ({**REFUND, "reason": True}, ["reason"]),
        ({"type": "dispute", "id": 7}, ["id"]),
    ],
)
def test_nothing_is_converted_from_another_type(event: dict[str, Any], fields: list[str]) -> None:
    assert faults(event) == fields


def test_ids_and_reasons_are_kept_as_they_are() -> None:
    event = parse_event(json.dumps({**REFUND, "id": " ev 4 ", "reason": ""}))
    assert (event.id, event.reason) == (" ev 4 ", "")


@pytest.mark.parametrize(
    ("event", "fields"),
    [
        (without(CHARGE, "type"), ["type"]),
        ({**CHARGE, "type": None}, ["type"]),
        ({**CHARGE, "type": 5, "amount": "x"}, ["type"]),
        ({**CHARGE, "type": ["charge"]}, ["type"]),
        ({}, ["id", "type"]),
        ({"type": False, "id": False}, ["id", "type"]),
    ],
)
def test_without_a_type_only_id_and_type_are_at_fault(
    event: dict[str, Any], fields: list[str]
) -> None:
    assert faults(event) == fields


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '"charge"', "5", '{"type": "charge"} x'])
def test_what_is_no_json_object_has_no_fields(text: str) -> None:
    assert faults(text) == []
