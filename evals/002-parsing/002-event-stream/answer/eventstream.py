"""A stream of events, read from chunks that may be cut anywhere."""

import codecs
import re
from typing import Final

_LINE_END: Final = re.compile(r"\r\n|\r|\n")


class EventReader:
    """Keeps what the chunks so far have left unfinished: bytes, a line and an event."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._line: list[str] = []
        self._event: dict[str, str] = {}
        self._ended_in_return = False

    def feed(self, chunk: bytes) -> list[dict[str, str]]:
        """The events that this chunk completes."""
        text = self._decoder.decode(chunk)
        if not text:
            return []
        if self._ended_in_return:
            text = text.removeprefix("\n")  # of a CR LF that was cut in two
            self._ended_in_return = False
        if text:
            self._ended_in_return = text.endswith("\r")
        *ends, rest = _LINE_END.split(text)
        events: list[dict[str, str]] = []
        for end in ends:
            self._line.append(end)
            events.extend(self._take_line("".join(self._line)))
            self._line.clear()
        self._line.append(rest)
        return events

    def _take_line(self, line: str) -> list[dict[str, str]]:
        """The event that a line ends, if it does and there is one."""
        if not line:
            event, self._event = self._event, {}
            return [event] if event else []
        if not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            before = self._event.get(name)
            self._event[name] = value if before is None else f"{before}\n{value}"
        return []
