"""Applies partial updates to customers."""

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Text = Annotated[str, Field(min_length=1)]


class PatchError(ValueError):
    """The patch can not be applied."""


class Address(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    street: Text
    city: Text
    postcode: str | None = None


class Customer(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    name: Text
    email: str | None
    credit_limit: Annotated[int, Field(ge=0)] | None
    tags: list[str]
    address: Address | None


def apply_patch(customer: dict[str, Any], patch: str) -> dict[str, Any]:
    try:
        return Customer.model_validate(customer | _load(patch)).model_dump()
    except ValidationError as error:
        raise PatchError(str(error)) from error


def _load(patch: str) -> dict[str, Any]:
    try:
        changes = json.loads(patch)
    except json.JSONDecodeError as error:
        raise PatchError("not JSON") from error
    if not isinstance(changes, dict):
        raise PatchError("not an object")
    return changes
