"""Tells genuine webhook calls from forged and repeated ones."""

import hmac
import json
import re
from collections.abc import Sequence
from typing import Any

TOLERANCE = 300
TIMESTAMP = re.compile(r"[0-9]{1,12}")


class SignatureError(Exception):
    """The call does not come from the sender, or not now."""


class PayloadError(Exception):
    """The call is genuine, but its body is no JSON object."""


def verify(body: bytes, header: str, secrets: Sequence[bytes], *, now: int) -> dict[str, Any]:
    """The object in `body`, if one of `secrets` has signed it lately."""
    timestamp, macs = _parts(header)
    if abs(int(timestamp) - now) > TOLERANCE:
        raise SignatureError("the timestamp is too far from now")
    message = timestamp.encode() + b"\n" + body
    expected = [hmac.digest(secret, message, "sha256").hex().encode() for secret in secrets]
    # As bytes, because texts that are not ASCII can not be compared in this way.
    if not any(hmac.compare_digest(mac, right) for mac in macs for right in expected):
        raise SignatureError("no signature is right")
    return _object(body)


def _parts(header: str) -> tuple[str, list[bytes]]:
    """The timestamp and the signatures of a header."""
    pairs = [part.strip().partition("=") for part in header.split(";")]
    timestamps = [value for name, _, value in pairs if name == "ts"]
    macs = [value.encode(errors="replace") for name, _, value in pairs if name == "mac"]
    if len(timestamps) != 1 or not TIMESTAMP.fullmatch(timestamps[0]):
        raise SignatureError("there must be one timestamp in seconds")
    return timestamps[0], macs


def _object(body: bytes) -> dict[str, Any]:
    try:
        payload = json.loads(body.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise PayloadError("the body is not JSON") from error
    if not isinstance(payload, dict):
        raise PayloadError("the body is not a JSON object")
    return payload
