"""Applies partial updates to customers."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

Text = Annotated[str, Field(min_length=1)]


class PatchError(ValueError):
    """The patch can not be applied."""


class AddressPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    street: Text = ""
    city: Text = ""
    postcode: str | None = None


class CustomerPatch(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: Text = ""
    email: str | None = None
    credit_limit: Annotated[int, Field(ge=0)] | None = None
    tags: list[str] = []
    address: AddressPatch | None = None


def apply_patch(customer: dict[str, Any], patch: str) -> dict[str, Any]:
    try:
        changes = CustomerPatch.model_validate_json(patch).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise PatchError(str(error)) from error
    if changes.get("address") is not None:
        address = {"postcode": None} | (customer["address"] or {}) | changes["address"]
        if "street" not in address or "city" not in address:
            raise PatchError("address needs street and city")
        changes["address"] = address
    return customer | changes
