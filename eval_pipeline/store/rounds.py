"""Something that is done every few seconds, in a thread of its own, until it is ended."""

import logging
import threading
from collections.abc import Callable

log = logging.getLogger(__name__)


class Rounds:
    """Begins at once; a round that fails is told, and the next one comes all the same."""

    def __init__(self, work: Callable[[], None], every_s: float) -> None:
        self._work = work
        self._every_s = every_s
        self._ended = threading.Event()
        threading.Thread(target=self._run, name=work.__name__, daemon=True).start()

    def close(self) -> None:
        """Returns at once; a round that is under way is the last."""
        self._ended.set()

    def _run(self) -> None:
        while not self._ended.wait(self._every_s):
            try:
                self._work()
            except Exception:
                log.exception("A round has failed.")
