"""The host's side of the line: canaries, signed reports, and words carried between both sides."""

import asyncio
import hashlib
import json
import secrets
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from typing import Any

from eval_pipeline.suites.coding.isolated_tests.wire import (
    HEADER,
    Nonsense,
    length,
    pack,
    signature,
    unpack,
)
from eval_pipeline.text import clean

CANARIES = 15
"""How many tests are run that must fail: where one passes, something was done to how tests run."""
MAX_REPORTS = 20_000
MAX_REPORTED = 4 * 1024**2
"""Bytes of all reports together."""
_LONGEST_TEXT = 2000
Gone = Callable[[], Awaitable[str]]


@dataclass
class Reports:
    """What was reported, as far as it was signed and in order."""

    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))
    canaries: Sequence[str] = field(
        default_factory=lambda: [f"test_{secrets.token_hex(6)}" for _ in range(CANARIES)]
    )
    words: list[list[Any]] = field(default_factory=list)
    forged: str | None = None
    _bytes: int = 0

    def add(self, body: bytes) -> None:
        """Keeps one more report; after a forged one, nothing is believed any more."""
        if self.forged is None:
            self.forged = self._fault(body)

    def _fault(self, body: bytes) -> str | None:
        """Keeps the report, or says why it can not be one."""
        try:
            text, signed = unpack(body)
            right = signature(hashlib.blake2b(key=self.key), text)
            number, *word = json.loads(text)
        except (Nonsense, ValueError, TypeError, AttributeError, RecursionError):
            return "a report could not be read"
        self._bytes += len(body)
        if not secrets.compare_digest(str(signed).encode("utf-8", "replace"), right.encode()):
            return "a report was not signed"
        if number != len(self.words) or number >= MAX_REPORTS:
            return "a report came out of order"
        if self._bytes > MAX_REPORTED:
            return "too much was reported"
        if not _is_report(word):
            return "a report was none"
        # An answer has a hand in what its errors say, and they are kept and shown to people.
        self.words.append([clean(x, _LONGEST_TEXT) if isinstance(x, str) else x for x in word])
        return None

    def opening(self, interface: Mapping[str, Sequence[str]] | None) -> bytes:
        """What the tests' process is told before it does anything."""
        told = {"key": self.key.hex(), "canaries": self.canaries, "interface": interface}
        return pack(told, b"K")


def _is_report(word: list[Any]) -> bool:
    """Whoever gets hold of the key may sign anything."""
    match word:
        case ["begin"] | ["end", int()] | ["broken" | "tampered", str()]:
            return True
    return [*map(type, word)] == [str, str, bool, str, str] and word[0] == "test"


async def listen(tests: socket.socket, reports: Reports) -> None:
    """Keeps what is reported until the line closes."""
    reader, writer = await asyncio.open_connection(sock=tests)
    with closing(writer):
        writer.write(reports.opening(None))
        async for body in _bodies(reader):
            reports.add(body[1:] if body[:1] == b"R" else b"")


async def carry(
    tests: socket.socket,
    answer: socket.socket,
    reports: Reports,
    interface: Mapping[str, Sequence[str]],
    gone: Gone,
) -> bool:
    """Carries words between both until the tests' side closes its line; whether that was first."""
    to_tests = await asyncio.open_connection(sock=tests)
    to_answer = await asyncio.open_connection(sock=answer)
    with closing(to_tests[1]), closing(to_answer[1]):
        to_tests[1].write(reports.opening(interface))
        left = asyncio.Event()
        back = asyncio.create_task(_carry_back(to_answer[0], to_tests[1], gone, left))
        try:
            async for body in _bodies(to_tests[0]):
                if body[:1] == b"R":
                    reports.add(body[1:])
                else:
                    await _pass_on(to_answer[1], body[1:])
            return not left.is_set()
        finally:
            back.cancel()
            with suppress(asyncio.CancelledError):
                await back


async def _carry_back(
    answer: StreamReader, tests: StreamWriter, gone: Gone, left: asyncio.Event
) -> None:
    """What the answer's process says, and at last why it says no more."""
    reason = ""
    try:
        async for body in _bodies(answer):
            await _pass_on(tests, b"A" + body)
    except Nonsense as nonsense:
        reason = str(nonsense)
    left.set()
    with suppress(OSError):
        tests.write(pack(reason or await gone(), b"G"))
        await tests.drain()


async def _pass_on(writer: StreamWriter, body: bytes) -> None:
    with suppress(OSError):
        writer.write(len(body).to_bytes(HEADER, "big") + body)
        await writer.drain()


async def _bodies(reader: StreamReader) -> AsyncIterator[bytes]:
    """Every whole message, until the line closes."""
    with suppress(asyncio.IncompleteReadError, OSError):
        while True:
            yield await reader.readexactly(length(await reader.readexactly(HEADER)))
