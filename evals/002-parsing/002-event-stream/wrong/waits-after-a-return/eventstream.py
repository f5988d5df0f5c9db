"""A stream of events, read from chunks."""

import codecs
import io


class EventReader:
    """Reads events; line ends are translated as in text files."""

    def __init__(self) -> None:
        decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")
        self._decoder = io.IncrementalNewlineDecoder(decoder, translate=True)
        self._buffer = ""
        self._event: dict[str, list[str]] = {}

    def feed(self, chunk: bytes) -> list[dict[str, str]]:
        *lines, self._buffer = (self._buffer + self._decoder.decode(chunk)).split("\n")
        events: list[dict[str, str]] = []
        for line in lines:
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
