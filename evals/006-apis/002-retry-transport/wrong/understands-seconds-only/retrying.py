"""An httpx transport that repeats what failed for the moment, where that is safe."""

from collections.abc import Callable
from datetime import datetime

import httpx

PASSING_STATUS = frozenset({429, 502, 503, 504})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})
FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0


class RetryTransport(httpx.BaseTransport):
    """Sends requests through another transport, more than once if need be."""

    def __init__(
        self,
        inner: httpx.BaseTransport,
        *,
        attempts: int,
        sleep: Callable[[float], None],
        now: Callable[[], datetime],
    ) -> None:
        self._inner = inner
        self._attempts = attempts
        self._sleep = sleep
        self._now = now

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """The reply to the last attempt."""
        # A body that is read from a generator could be sent only once.
        request.read()
        for repetition in range(self._attempts - 1):
            wait = FIRST_WAIT * 2**repetition
            try:
                response = self._inner.handle_request(request)
            except httpx.TransportError as error:
                if not _is_safe(request, error):
                    raise
            else:
                if response.status_code not in PASSING_STATUS or not _is_safe(request):
                    return response
                asked = self._retry_after(response)
                if asked is not None and asked > LONGEST_WAIT:
                    return response
                wait = wait if asked is None else asked
                response.close()
            self._sleep(wait)
        return self._inner.handle_request(request)

    def close(self) -> None:
        """Closes the other transport."""
        self._inner.close()

    def _retry_after(self, response: httpx.Response) -> float | None:
        """How many seconds the server asks to wait, if it does so in a way that is known."""
        try:
            return float(response.headers["Retry-After"])
        except (KeyError, ValueError):
            return None


def _is_safe(request: httpx.Request, error: httpx.TransportError | None = None) -> bool:
    """Whether the server does nothing twice when it gets the request again."""
    never_sent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
    return never_sent or request.method in SAFE_METHODS or "Idempotency-Key" in request.headers
