"""Partial updates of a stored customer, in which absent and null mean different things."""

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

NonEmpty = Annotated[str, Field(min_length=1)]


class PatchError(ValueError):
    """The patch can not be applied."""


class _Patch(BaseModel):
    """Fields are optional; which ones were given is what `exclude_unset` tells apart.

    The defaults only make a field optional: they never reach a customer.
    """

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)


class _AddressPatch(_Patch):
    street: NonEmpty = ""
    city: NonEmpty = ""
    postcode: str | None = None


class _CustomerPatch(_Patch):
    name: NonEmpty = ""
    email: str | None = None
    credit_limit: Annotated[int, Field(ge=0)] | None = None
    tags: list[str] = []
    address: _AddressPatch | None = None


def apply_patch(customer: dict[str, Any], patch: str) -> dict[str, Any]:
    """The customer after the update that a JSON text describes."""
    try:
        parsed = _CustomerPatch.model_validate_json(patch)
    except ValidationError as error:
        raise PatchError(str(error)) from error
    changes = parsed.model_dump(exclude_unset=True)
    if parsed.address is not None:
        changes["address"] = _patched_address(customer["address"], changes["address"])
    return {**customer, **changes}


def _patched_address(stored: dict[str, Any] | None, changes: dict[str, Any]) -> dict[str, Any]:
    address = {"postcode": None, **(stored or {}), **changes}
    missing = {"street", "city"} - address.keys()
    if missing:
        raise PatchError(f"a new address needs {' and '.join(sorted(missing))}")
    return address
