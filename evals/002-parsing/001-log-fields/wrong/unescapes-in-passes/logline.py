"""Log lines of key=value fields, read from left to right and written back."""

import re
from typing import Final

_KEY: Final = re.compile(r'[^ \t="]+')
_BARE: Final = re.compile(r'[^ \t"]*')
_BLANK: Final = re.compile(r"[ \t]*")
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "t": "\t"}
_ESCAPED: Final = str.maketrans({char: f"\\{letter}" for letter, char in _ESCAPES.items()})


class LineError(ValueError):
    """A line that can not be read, and where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(f"{message} at {position}")
        self.position = position


def parse_line(line: str) -> dict[str, str | None]:
    """The fields of a line in their order."""
    fields: dict[str, str | None] = {}
    position = _skip(_BLANK, line, 0)
    while position < len(line):
        start, position = position, _skip(_KEY, line, position)
        key = line[start:position]
        if not key:
            raise LineError(f"{line[start]} where a key should be", start)
        if key in fields:
            raise LineError(f"second {key}", start)
        fields[key], position = _value(line, position)
        if position < len(line) and line[position] not in " \t":
            raise LineError(f"unexpected {line[position]}", position)
        position = _skip(_BLANK, line, position)
    return fields


def format_line(fields: dict[str, str | None]) -> str:
    """The line that reads as these fields."""
    return " ".join(
        key if value is None else f"{key}={_written(value)}" for key, value in fields.items()
    )


def _skip(pattern: re.Pattern[str], line: str, position: int) -> int:
    match = pattern.match(line, position)
    return match.end() if match else position


def _value(line: str, position: int) -> tuple[str | None, int]:
    """What stands after a key, and where it ends."""
    if not line.startswith("=", position):
        return None, position
    position += 1
    if line.startswith('"', position):
        return _quoted(line, position)
    end = _skip(_BARE, line, position)
    return line[position:end], end


def _quoted(line: str, opening: int) -> tuple[str, int]:
    position = opening + 1
    while position < len(line):
        char = line[position]
        if char == '"':
            return _unescape(line[opening + 1 : position]), position + 1
        if char == "\\" and position + 1 < len(line):
            position += 1
            if line[position] not in _ESCAPES:
                raise LineError("unknown escape", position - 1)
        position += 1
    raise LineError("text without end", opening)


def _unescape(text: str) -> str:
    for letter, char in _ESCAPES.items():
        text = text.replace(f"\\{letter}", char)
    return text


def _written(value: str) -> str:
    if not any(char in value for char in ' \t\n"'):
        return value
    return f'"{value.translate(_ESCAPED)}"'
