"""What every record is."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Immutable, and nothing it does not name."""

    model_config = ConfigDict(frozen=True, extra="forbid")
