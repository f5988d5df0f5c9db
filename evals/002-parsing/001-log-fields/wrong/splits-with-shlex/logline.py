"""Log lines of key=value fields."""

import shlex


class LineError(ValueError):
    """A line that can not be read, and where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def parse_line(line: str) -> dict[str, str | None]:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise LineError(str(error), line.rfind('"')) from error
    fields: dict[str, str | None] = {}
    for word in words:
        key, separator, value = word.partition("=")
        if not key:
            raise LineError("field without key", line.find(word))
        if key in fields:
            raise LineError("repeated key", line.rfind(key))
        fields[key] = value if separator else None
    return fields


def format_line(fields: dict[str, str | None]) -> str:
    return " ".join(
        key if value is None else f"{key}={_quote(value)}" for key, value in fields.items()
    )


def _quote(value: str) -> str:
    if not any(char in value for char in ' \t\n"'):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
