"""What every record is."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict


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


def now() -> datetime:
    return datetime.now(UTC)
