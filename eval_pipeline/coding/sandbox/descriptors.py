"""Descriptors that a program is to inherit, closed here together."""

import os
from types import TracebackType


class Descriptors:
    """Hands out descriptors and closes all of them with its block."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._own: list[int] = []

    def holding(self, content: bytes) -> int:
        """One to read the content from, which is nowhere on a disk."""
        number = os.memfd_create("sandbox")
        self.numbers.append(number)
        os.write(number, content)
        os.lseek(number, 0, os.SEEK_SET)
        return number

    def pipe(self) -> tuple[int, int]:
        """One to read from, to be inherited, and one to write to, to be kept."""
        reader, writer = os.pipe()
        self.numbers.append(reader)
        self._own.append(writer)
        return reader, writer

    def __enter__(self) -> "Descriptors":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number in (*self.numbers, *self._own):
            os.close(number)
