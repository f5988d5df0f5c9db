"""Tests that must fail: where one of them passes, something has been done to how tests are run."""

import asyncio
import hashlib
import importlib
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

# Compiled under the name of the tests' own file, so that nobody can tell them from those.
_SOURCES = (
    "assert 1 == 2",
    "assert len([1]) == 2",
    "assert not isinstance(1, int)",
    "raise AssertionError('must fail')",
    "raise ValueError('must fail')",
    "with pytest.raises(ValueError): pass",
    "assert sorted([2, 1]) == [2, 1]",
    "assert {'a': 1} == {'a': 2}",
    "assert all([True, False])",
    "assert any([False])",
    "assert 0.5 == pytest.approx(0.6)",
    "assert type(1) is str",
    "assert 'x' in {'y'}",
    "assert sum([1, 2]) == 4",
    "assert str(1) == '2'",
)
COUNT = len(_SOURCES)


def canary(number: int, name: str, path: str) -> Callable[[], None]:
    """One of them, which looks like any other test of the file."""
    source = f"def {name}():\n    {_SOURCES[number % COUNT]}\n"
    # Only where tests run there is a pytest; the host wants no more than the count.
    space: dict[str, Any] = {"pytest": importlib.import_module("pytest")}
    exec(compile(source, path, "exec"), space)  # noqa: S102  (the source is above)
    made: Callable[[], None] = space[name]
    return made


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
        default_factory=lambda: [f"test_{secrets.token_hex(6)}" for _ in range(COUNT)]
    )
    words: list[list[Any]] = field(default_factory=list)
    forged: str | None = None
    _bytes: int = 0

    def add(self, body: bytes) -> None:
        """One more report; one that is not signed shows that somebody else has been talking."""
        try:
            text, signed = unpack(body)
            right = signature(hashlib.blake2b(key=self.key), text)
            number, *word = json.loads(text)
        except (Nonsense, ValueError, TypeError, AttributeError, RecursionError):
            self.forged = self.forged or "a report could not be read"
            return
        self._bytes += len(body)
        if not secrets.compare_digest(str(signed).encode("utf-8", "replace"), right.encode()):
            self.forged = self.forged or "a report was not signed"
        elif number != len(self.words) or number >= MAX_REPORTS:
            self.forged = self.forged or "a report came out of order"
        elif self._bytes > MAX_REPORTED:
            self.forged = self.forged or "too much was reported"
        elif not _is_report(word):
            self.forged = self.forged or "a report was none"
        else:
            self.words.append([_shown(part) if isinstance(part, str) else part for part in word])

    def opening(self, interface: Mapping[str, Sequence[str]] | None) -> bytes:
        """What the tests' process is told before it does anything."""
        told = {
            "key": self.key.hex(),
            "canaries": list(self.canaries),
            "interface": None if interface is None else {k: list(v) for k, v in interface.items()},
        }
        return pack(told, b"K")


def _is_report(word: list[Any]) -> bool:
    """Whoever gets hold of the key may sign anything."""
    match word:
        case ["begin"] | ["end", int()] | ["broken" | "tampered", str()]:
            return True
    return [*map(type, word)] == [str, str, bool, str, str] and word[0] == "test"


def _shown(text: str) -> str:
    """An answer has a hand in what its errors say, and they are kept and shown to people."""
    return clean(text.encode("utf-8", "replace"), _LONGEST_TEXT)


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
