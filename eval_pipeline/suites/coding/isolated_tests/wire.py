"""Words of JSON over a socket, each with its length before it and none too long."""

import hashlib
import json
import socket
from collections.abc import MutableMapping
from typing import Any

HEADER = 4
MAX_BYTES = 16 * 1024**2
_CHUNK = 65536


class Nonsense(Exception):  # noqa: N818
    """The other side said something that can not be understood, or was not agreed on."""


def pack(word: object, kind: bytes = b"") -> bytes:
    """A word as it is sent, where words of several kinds share a line with its kind before it."""
    body = kind + json.dumps(word, separators=(",", ":")).encode()
    if len(body) > MAX_BYTES:
        raise Nonsense(f"A message has {len(body)} bytes, more than {MAX_BYTES}.")
    return len(body).to_bytes(HEADER, "big") + body


def unpack(body: bytes) -> Any:
    """The word of a body."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise Nonsense("A message is not JSON.") from None


def length(header: bytes) -> int:
    """How long the body is that follows."""
    size = int.from_bytes(header, "big")
    if size > MAX_BYTES + 1:  # one for its kind
        raise Nonsense(f"A message of {size} bytes was announced, more than {MAX_BYTES}.")
    return size


def channel_of(environment: MutableMapping[str, str]) -> socket.socket:
    """The socket that the sandbox gave to this process, and to none that it starts."""
    channel = socket.socket(fileno=int(environment.pop("EVALS_CHANNEL")))
    channel.settimeout(None)
    channel.set_inheritable(False)
    return channel


class Frames:
    """One end of the line; only one may read from it at a time."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._buffer = bytearray()

    def send(self, word: object, kind: bytes = b"") -> None:
        """Says one word, however long that takes."""
        self._channel.sendall(pack(word, kind))

    def fileno(self) -> int:
        """What to wait on for more."""
        return self._channel.fileno()

    def receive(self) -> Any:
        """The next word; EOFError if there will be none."""
        while (word := self.buffered()) is None:
            self.read_more()
        return word

    def receive_kind(self) -> tuple[bytes, Any]:
        """The next word, which has its kind before it."""
        while (body := self._body()) is None:
            self.read_more()
        return body[:1], unpack(body[1:])

    def buffered(self) -> Any:
        """The next word if it is here already, else None, which is no word."""
        body = self._body()
        return None if body is None else unpack(body)

    def _body(self) -> bytes | None:
        if len(self._buffer) < HEADER:
            return None
        end = HEADER + length(bytes(self._buffer[:HEADER]))
        if len(self._buffer) < end:
            return None
        body = bytes(self._buffer[HEADER:end])
        del self._buffer[:end]
        return body

    def read_more(self) -> None:
        """Waits for some bytes."""
        try:
            chunk = self._channel.recv(_CHUNK)
        except OSError:
            chunk = b""
        if not chunk:
            raise EOFError
        self._buffer += chunk


def signature(keyed: hashlib.blake2b, text: str) -> str:
    """Of a text, by a copy of the keyed hash that is used for nothing else."""
    keyed.update(text.encode())
    return keyed.hexdigest()
