"""Short hashes of plain values, by which work is known again: equal values, equal hash."""

import hashlib
import json

from pydantic import JsonValue

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical(part: JsonValue) -> str:
    """The part as text, the same for equal parts."""
    return _CANONICAL.encode(part)


def fingerprint_of_text(text: str) -> str:
    """The `fingerprint` of a single part, by its canonical text."""
    return hashlib.sha256(f"[{text}]".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fingerprint(*parts: JsonValue) -> str:
    """A short hash of everything that is given: equal parts, equal hash."""
    running = RunningFingerprint()
    for part in parts:
        running.add(part)
    return running.value()


class RunningFingerprint:
    """The `fingerprint` of parts that come one by one."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"[")
        self._comma = b""

    def add(self, part: JsonValue) -> None:
        """One more part, after those before it."""
        self._hash.update(self._comma + canonical(part).encode("utf-8", "surrogatepass"))
        self._comma = b","

    def value(self) -> str:
        """The fingerprint of the parts so far."""
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()[:16]
