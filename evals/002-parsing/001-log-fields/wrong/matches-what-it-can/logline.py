"""Log lines of key=value fields."""

import re

_FIELD = re.compile(r'([^ \t="]+)(?:=(?:"((?:[^"\\]|\\.)*)"|([^ \t"]*)))?')
_ESCAPES = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}


class LineError(ValueError):
    """A line that can not be read, and where."""

    def __init__(self, message: str, position: int) -> None:
        super().__init__(message)
        self.position = position


def parse_line(line: str) -> dict[str, str | None]:
    fields: dict[str, str | None] = {}
    for match in _FIELD.finditer(line):
        key, quoted, bare = match.groups()
        if key in fields:
            raise LineError("repeated key", match.start())
        fields[key] = bare if quoted is None else _unescape(quoted, match.start(2))
    return fields


def _unescape(text: str, offset: int) -> str:
    def char(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise LineError("unknown escape", offset + match.start())
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", char, text)


def format_line(fields: dict[str, str | None]) -> str:
    return " ".join(
        key if value is None else f"{key}={_quote(value)}" for key, value in fields.items()
    )


def _quote(value: str) -> str:
    if not re.search(r'[ \t\n"]', value):
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\t", "\\t") + '"'
