"""The events of a payment service, known ones and those of its later versions."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
)


def _utc(value: datetime) -> datetime:
    return value.astimezone(UTC)


Id = Annotated[str, Field(min_length=1)]
Amount = Annotated[Decimal, Field(gt=0, decimal_places=2, allow_inf_nan=False)]
Moment = Annotated[AwareDatetime, AfterValidator(_utc)]


class EventError(Exception):
    """A text is no event."""

    def __init__(self, fields: list[str]) -> None:
        super().__init__(", ".join(fields))
        self.fields = fields


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: Id


class Charge(_Event):
    """Money was taken."""

    amount: Amount
    created: Moment


class Refund(_Event):
    """Money was given back."""

    amount: Amount
    charge_id: Id = Field(alias="chargeId")
    reason: str | None = None


class Unknown(_Event):
    """Any other event."""

    type: str
    payload: dict[str, Any]


def parse_event(text: str) -> Charge | Refund | Unknown:
    """The event in a JSON text."""
    try:
        payload = json.loads(text)
    except ValueError as error:
        raise EventError([]) from error
    if not isinstance(payload, dict):
        raise EventError([])
    try:
        if payload.get("type") == "charge":
            return Charge.model_validate(payload)
        if payload.get("type") == "refund":
            return Refund.model_validate(payload)
        return Unknown.model_validate({**payload, "payload": payload})
    except ValidationError as error:
        raise EventError(sorted({str(each["loc"][0]) for each in error.errors()})) from error
