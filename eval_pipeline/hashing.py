"""Short hashes of plain values, by which work is known again: equal values, equal hash."""

import hashlib
import json

from pydantic import JsonValue

_CANONICAL = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical(part: JsonValue) -> str:
    """Return the part as text, the same for equal parts."""
    return _CANONICAL.encode(part)


def fingerprint_of_text(text: str) -> str:
    """Return the `fingerprint` of parts by their canonical texts, with commas between them."""
    return hashlib.sha256(f"[{text}]".encode("utf-8", "surrogatepass")).hexdigest()[:16]


def fingerprint(*parts: JsonValue) -> str:
    """Return a short hash of everything that is given: equal parts, equal hash."""
    return fingerprint_of_text(",".join(map(canonical, parts)))


class RunningFingerprint:
    """Computes the `fingerprint` of parts that come one by one."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256(b"[")
        self._comma = b""

    def add(self, part: JsonValue) -> None:
        """Add a part, after those before it."""
        self._hash.update(self._comma + canonical(part).encode("utf-8", "surrogatepass"))
        self._comma = b","

    def value(self) -> str:
        """Return the fingerprint of the parts so far."""
        whole = self._hash.copy()
        whole.update(b"]")
        return whole.hexdigest()[:16]
