"""Request bodies: read and unpacked in pieces, never more than the limit."""

import zlib
from collections.abc import Callable
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from eval_pipeline.interop.remote.messages import RefusedError

GZIP = 16 + zlib.MAX_WBITS
MOST_DIGITS = 19


class Unpacker:
    """Writes what it is fed, unpacked, up to a limit of bytes."""

    def __init__(self, write: Callable[[bytes], Any], most: int, encoding: str) -> None:
        self._write = write
        self._most = most
        self._written = 0
        self._gzip = zlib.decompressobj(GZIP) if encoding == "gzip" else None

    def feed(self, data: bytes) -> None:
        """Unpack another piece."""
        if self._gzip is None:
            self._hand_on(data)
            return
        while data:
            # One byte more than there is room for tells that there is too much.
            room = self._most - self._written + 1
            try:
                self._hand_on(self._gzip.decompress(data, room))
            except zlib.error:
                raise RefusedError("The body is not packed with gzip.") from None
            if self._gzip.unused_data:
                raise RefusedError("After the end of what gzip packed there is more.")
            data = self._gzip.unconsumed_tail

    def finish(self) -> None:
        """Check that the packed body was complete."""
        if self._gzip is not None and not self._gzip.eof:
            raise RefusedError("The body ends before what gzip packed does.")

    def _hand_on(self, data: bytes) -> None:
        self._written += len(data)
        if self._written > self._most:
            raise RefusedError(f"More than {self._most} bytes are not taken at once.", 413)
        self._write(data)


async def receive(
    request: Request, write: Callable[[bytes], Any], *, most: int, media_type: str
) -> None:
    """Read the body of a request into `write`, unless it is too large or of another type."""
    encoding = _encoding(request, media_type)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and len(length) <= MOST_DIGITS and int(length) > most:
        raise RefusedError(f"More than {most} bytes are not taken at once.", 413)
    unpacker = Unpacker(write, most, encoding)
    async for data in request.stream():
        await run_in_threadpool(unpacker.feed, data)
    unpacker.finish()


def _encoding(request: Request, media_type: str) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        raise RefusedError(f"The body has to be {media_type}.", 415)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise RefusedError("The body may be packed with gzip, and with nothing else.", 415)
    return encoding
