"""A stream of events, read from chunks."""

import codecs


class EventReader:
    """Reads events from whole lines and keeps the last, unfinished one."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._buffer = ""
        self._event: dict[str, list[str]] = {}

    def feed(self, chunk: bytes) -> list[dict[str, str]]:
        lines = (self._buffer + self._decoder.decode(chunk)).splitlines(keepends=True)
        self._buffer = ""
        if lines and not lines[-1].endswith(("\n", "\r")):
            self._buffer = lines.pop()
        events: list[dict[str, str]] = []
        for line in (line.rstrip("\r\n") for line in lines):
            if line:
                self._add(line)
            elif self._event:
                events.append({name: "\n".join(values) for name, values in self._event.items()})
                self._event = {}
        return events

    def _add(self, line: str) -> None:
        if not line.startswith(":"):
            name, _, value = line.partition(":")
            self._event.setdefault(name, []).append(value.removeprefix(" "))
