"""Applies partial updates to customers."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Text = Annotated[str, Field(min_length=1)]


class PatchError(ValueError):
    """The patch can not be applied."""


class AddressPatch(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    street: Text | None = None
    city: Text | None = None
    postcode: str | None = None


class CustomerPatch(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    name: Text | None = None
    email: str | None = None
    credit_limit: Annotated[int, Field(ge=0)] | None = None
    tags: list[str] | None = None
    address: AddressPatch | None = None


def apply_patch(customer: dict[str, Any], patch: str) -> dict[str, Any]:
    try:
        parsed = CustomerPatch.model_validate_json(patch)
    except ValidationError as error:
        raise PatchError(str(error)) from error
    changes = parsed.model_dump(exclude_none=True)
    updated = customer | changes
    if parsed.address is not None:
        address = {"postcode": None} | (customer["address"] or {}) | changes["address"]
        if "street" not in address or "city" not in address:
            raise PatchError("address needs street and city")
        updated["address"] = address
    return updated
