"""The events of a payment service, known ones and those of its later versions."""

import json
import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError


def _amount(value: object) -> Decimal:
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]+(\.[0-9]{1,2})?", value):
        raise ValueError("not an amount")
    return Decimal(value)


def _moment(value: object) -> datetime:
    if not isinstance(value, str):
        raise ValueError("not a text")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("no offset")
    return moment.astimezone(UTC)


Id = Annotated[str, Field(strict=True, min_length=1)]
Amount = Annotated[Decimal, BeforeValidator(_amount), Field(gt=0)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


class EventError(Exception):
    """A text is no event."""

    def __init__(self, fields: list[str]) -> None:
        super().__init__(", ".join(fields))
        self.fields = fields


class Charge(BaseModel):
    """Money was taken."""

    model_config = ConfigDict(frozen=True)

    type: Literal["charge"]
    id: Id
    amount: Amount
    created: Moment


class Refund(BaseModel):
    """Money was given back."""

    model_config = ConfigDict(frozen=True)

    type: Literal["refund"]
    id: Id
    amount: Amount
    charge_id: Id = Field(alias="chargeId")
    reason: Annotated[str, Field(strict=True)] | None = None


class Unknown(BaseModel):
    """Any other event."""

    model_config = ConfigDict(frozen=True)

    id: Id
    type: Annotated[str, Field(strict=True)]
    payload: dict[str, Any]


EVENT: TypeAdapter[Charge | Refund | Unknown] = TypeAdapter(Charge | Refund | Unknown)


def parse_event(text: str) -> Charge | Refund | Unknown:
    """The event in a JSON text."""
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise EventError([]) from error
    if not isinstance(payload, dict):
        raise EventError([])
    try:
        return EVENT.validate_python({**payload, "payload": payload})
    except ValidationError as error:
        fields = {str(each["loc"][1]) for each in error.errors() if each["loc"][0] == "Unknown"}
        raise EventError(sorted(fields)) from error
