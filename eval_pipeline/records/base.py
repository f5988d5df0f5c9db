"""What every record is."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict
from pydantic_core import ErrorDetails


class Record(BaseModel):
    """Immutable, and nothing it does not name."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def whole_characters(text: str) -> str:
    """Joins halves of a character that were split; a half that stays alone can not be kept."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


Text = Annotated[str, AfterValidator(whole_characters)]
"""Text of which a server made every character: what JSON can escape, UTF-8 may not hold."""


def field_error(detail: ErrorDetails) -> str:
    """Return what is wrong with a field, as part of a sentence."""
    where = ".".join(map(str, detail["loc"]))
    message = detail["msg"].removeprefix("Value error, ")
    return f"{where}: {message[:1].lower()}{message[1:]}" if where else message


def now() -> datetime:
    return datetime.now(UTC)
