"""A terminal for the tests: a command in it, keys pressed, and the screen as a person sees it."""

import shlex
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import cast

import pexpect
import pyte

from eval_pipeline_tests.project import environment

UP, DOWN, ENTER, SPACE, ESCAPE, CTRL_C = "\x1b[A", "\x1b[B", "\r", " ", "\x1b", "\x03"
LONGEST_S = 120.0
"""Far more than anything takes; a test that would wait longer has failed."""


class _Screen(pyte.HistoryScreen):
    """One that answers when it is asked where its cursor is, as terminals do."""

    def __init__(self, child: "pexpect.spawn[bytes]", columns: int, rows: int) -> None:
        self._child = child
        super().__init__(columns, rows, history=10_000)

    def write_process_input(self, data: str) -> None:
        self._child.send(data)


class Terminal:
    """One that is open; `in_terminal` opens it."""

    def __init__(self, child: "pexpect.spawn[bytes]", columns: int, rows: int) -> None:
        self._child = child
        self._screen = _Screen(child, columns, rows)
        self._stream = pyte.ByteStream(self._screen)

    @property
    def lines(self) -> list[str]:
        """What the screen shows now."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def everything(self) -> str:
        """The same, and all that has scrolled out of it."""
        columns = range(self._screen.columns)
        gone = ("".join(row[at].data for at in columns) for row in self._screen.history.top)
        return "\n".join([*(line.rstrip() for line in gone), *self.lines])

    def press(self, *keys: str) -> None:
        """Types these keys, or texts."""
        self._child.send("".join(keys))

    def resize(self, columns: int, rows: int) -> None:
        """Somebody has pulled at the window's corner."""
        self._screen.resize(rows, columns)
        self._child.setwinsize(rows, columns)

    @property
    def pid(self) -> int:
        """The process of the command."""
        assert self._child.pid is not None
        return self._child.pid

    def wait_for(self, text: str, *, gone: bool = False) -> None:
        """Returns as soon as the screen shows the text, or no longer does."""
        until = time.monotonic() + LONGEST_S
        while (text in "\n".join(self.lines)) is gone:
            there = self._read(until - time.monotonic())
            assert there, f"{text!r} did not {'go' if gone else 'come'}:\n{self.everything}"

    def end(self) -> int:
        """Waits until the command has ended by itself, and returns its exit code."""
        until = time.monotonic() + LONGEST_S
        while self._read(until - time.monotonic()):
            pass
        assert self._child.flag_eof, f"it does not end:\n{self.everything}"
        self._child.wait()
        if self._child.signalstatus is not None:
            return -self._child.signalstatus
        assert self._child.exitstatus is not None
        return self._child.exitstatus

    def _read(self, longest_s: float) -> bool:
        try:
            self._stream.feed(self._child.read_nonblocking(65_536, max(0.0, longest_s)))
        except (pexpect.EOF, pexpect.TIMEOUT):
            return False
        return True


@contextmanager
def in_terminal(
    project: Path,
    command: str,
    variables: Mapping[str, str] | None = None,
    *,
    columns: int = 80,
    rows: int = 24,
) -> Iterator[Terminal]:
    """Starts a command line in a terminal of that size; with the block, it is ended."""
    env = environment(TERM="xterm-256color", **(variables or {}))
    for unwanted in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
        env.pop(unwanted, None)
    name, *words = shlex.split(command)
    with warnings.catch_warnings():
        # Later Pythons warn whoever has threads and forks, as a terminal must.
        warnings.simplefilter("ignore", DeprecationWarning)
        # The stubs take it for a stream of text, which it is only with an encoding.
        child = cast(
            "pexpect.spawn[bytes]",
            pexpect.spawn(name, words, cwd=str(project), env=env, dimensions=(rows, columns)),
        )
    child.delaybeforesend = None
    try:
        yield Terminal(child, columns, rows)
    finally:
        child.close(force=True)
