"""Comments in reports that programs read: values as JSON, which no text in them can end."""

import re
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Self

from pydantic import AfterValidator, AwareDatetime, ConfigDict, StringConstraints, ValidationError

from eval_pipeline.record import Record
from eval_pipeline.records import ModelId

BEGIN = "<!-- evals:"
"""What a line begins with that programs read."""
_COMMENT = re.compile(r"<!-- evals:([a-z]+) (\{.*\}) -->[ \t]*")
_ESCAPED = {"<": "\\u003c", ">": "\\u003e"}

Short = Annotated[str, StringConstraints(max_length=2000)]


def utc(moment: datetime) -> datetime:
    """The same moment in UTC, which is meant where nothing is said."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


Moment = Annotated[AwareDatetime, AfterValidator(utc)]


class Comment(Record):
    """What stands in such a comment; people can change reports, so it is checked on reading."""

    model_config = ConfigDict(frozen=True, extra="ignore")
    kind: ClassVar[str]

    @classmethod
    def read(cls, line: str) -> Self | None:
        """What the line says, if it is such a comment."""
        found = _COMMENT.fullmatch(line)
        if found is None or found[1] != cls.kind:
            return None
        try:
            return cls.model_validate_json(found[2])
        except (ValidationError, OverflowError):  # also a day that UTC does not have
            return None

    def line(self) -> str:
        """The comment, in one line."""
        values = self.model_dump_json(ensure_ascii=True)
        for one, escaped in _ESCAPED.items():
            values = values.replace(one, escaped)
        return f"<!-- evals:{self.kind} {values} -->"


class Head(Comment):
    """Which run a report is about, and when it was looked into last: the first of its comments."""

    kind = "report"

    run_id: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    model: ModelId
    opened: Moment
    analysed: Moment
    told: tuple[Short, ...] = ()
    """The failures with a section of their own: one that is not there was removed by somebody."""

    @property
    def age(self) -> tuple[datetime, str]:
        """By which reports are in the order in which their runs were opened."""
        return self.opened, self.run_id


class FailureNote(Comment):
    """One failure as a report has it, for later reports of the same model."""

    kind = "failure"

    item: Short
    sample: int = 0
    step: Short | None = None
    error: Short | None = None
    classification: Short | None = None
