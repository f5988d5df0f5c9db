"""The events of a payment service, known ones and those of its later versions."""

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictStr,
    TypeAdapter,
    ValidationError,
)

AMOUNT = re.compile(r"[0-9]+(\.[0-9]{1,2})?")


def _amount(value: object) -> Decimal:
    if not isinstance(value, str) or not AMOUNT.fullmatch(value):
        raise ValueError("an amount is a text such as '12.50'")
    return Decimal(value)


def _moment(value: object) -> datetime:
    """An instant; pydantic itself would also take numbers for seconds since 1970."""
    if not isinstance(value, str):
        raise ValueError("a moment is a text")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError("a moment needs an offset")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("a moment must be one in UTC too") from error


def _filled(value: str) -> str:
    if not value:
        raise ValueError("must not be empty")
    return value


Id = Annotated[StrictStr, AfterValidator(_filled)]
Amount = Annotated[Decimal, BeforeValidator(_amount), Field(gt=0)]
Moment = Annotated[datetime, BeforeValidator(_moment)]


class EventError(Exception):
    """A text is no event; `fields` are those at fault."""

    def __init__(self, fields: list[str]) -> None:
        super().__init__(f"not a valid event: {', '.join(fields) or 'no JSON object'}")
        self.fields = fields


class _Event(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    type: StrictStr
    id: Id


class Charge(_Event):
    """Money was taken."""

    amount: Amount
    created: Moment


class Refund(_Event):
    """Money was given back."""

    amount: Amount
    charge_id: Id = Field(alias="chargeId")
    reason: StrictStr | None = None


class Unknown(_Event):
    """An event of a type that did not exist yet."""

    payload: dict[str, Any]


JSON_OBJECT: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


def parse_event(text: str) -> Charge | Refund | Unknown:
    """The event in a JSON text; its type alone decides what it has to look like."""
    try:
        payload = JSON_OBJECT.validate_json(text)
    except ValidationError as error:
        raise EventError([]) from error
    try:
        match payload.get("type"):
            case "charge":
                return Charge.model_validate(payload)
            case "refund":
                return Refund.model_validate(payload)
            case _:
                return Unknown.model_validate(
                    {"type": payload.get("type"), "id": payload.get("id"), "payload": payload}
                )
    except ValidationError as error:
        raise EventError(sorted({str(each["loc"][0]) for each in error.errors()})) from error
