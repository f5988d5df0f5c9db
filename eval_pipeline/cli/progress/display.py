"""The bars on the terminal and the log above them, a few times a second; loaded with the bars."""

import logging
import os
import sys
import threading
import time
from contextlib import suppress
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from rich.console import Console, ConsoleDimensions, Group
from rich.live import Live
from rich.text import Text

from eval_pipeline.cli.progress.screen import frame
from eval_pipeline.progress import Follower, Glance, Phase, Watch
from eval_pipeline.untrusted import printable

SHOWN_EVERY_S = 0.3
PERIODIC = "progress %s"
"""The log line that tells every few seconds what the bars tell all the time."""

log = logging.getLogger(__name__)


class Display:
    """What is watched, shown until the end; the bars go, and stay only if the work was cut short.

    How each model ended is in the log, which stands above the bars.
    """

    def __init__(self, watch: Watch) -> None:
        # A way to the terminal of its own: within a step Dagster keeps stderr in a file.
        self._terminal = os.fdopen(
            os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding, errors="replace"
        )
        # Names and messages may be anybody's words: nothing in them is markup.
        self._console = Console(file=self._terminal, markup=False, emoji=False, highlight=False)
        self._follower = Follower(watch, time.monotonic())
        self._all_lines, self._can_show = False, True
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            transient=True,
            # What goes to a file must not come out here.
            redirect_stdout=sys.stdout.isatty(),
            get_renderable=self._frame,
        )
        self._messages: SimpleQueue[Text] = SimpleQueue()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._show_until_the_end, daemon=True)
        self.log: logging.Handler = _ToBePrinted(self._messages)

    def __enter__(self) -> Self:
        self._live.start(refresh=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The terminal may be gone, which is no reason to fail.
        with suppress(OSError), self._terminal:
            self._close(cut_short=error is not None)

    def _close(self, *, cut_short: bool) -> None:
        try:
            self._ending.set()
            self._thread.join()
            self._print_messages()
            if cut_short and self._can_show and self._look().phase is Phase.WORKING:
                self._all_lines, self._live.transient = True, False
        finally:
            self._live.stop()

    def _show_until_the_end(self) -> None:
        try:
            while not self._ending.wait(SHOWN_EVERY_S):
                self._print_messages()
                self._live.refresh()
        except Exception:  # what is only to be shown must not end the work
            self._can_show = False
            log.exception("How far it is could not be shown.")

    def _print_messages(self) -> None:
        """All at once that have come meanwhile: each printing draws the bars anew."""
        if count := self._messages.qsize():
            self._console.print(Group(*(self._messages.get() for _ in range(count))))

    def _frame(self) -> Text:
        if not self._can_show:
            return Text()
        self._console.size = size = ConsoleDimensions(
            *os.get_terminal_size(self._terminal.fileno())
        )
        return frame(self._look(), size.width, None if self._all_lines else size.height)

    def _look(self) -> Glance:
        return self._follower.look(time.monotonic())


class _ToBePrinted(logging.Handler):
    """Keeps messages until they are printed above the bars."""

    def __init__(self, messages: SimpleQueue[Text]) -> None:
        super().__init__()
        self._messages = messages

    def emit(self, record: logging.LogRecord) -> None:
        if record.msg != PERIODIC:
            style = "yellow" if record.levelno >= logging.WARNING else ""
            self._messages.put(Text(printable(self.format(record)), style))
