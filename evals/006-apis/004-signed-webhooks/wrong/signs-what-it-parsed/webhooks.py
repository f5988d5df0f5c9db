"""Tells genuine webhook calls from forged and repeated ones."""

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

TOLERANCE = 300


class SignatureError(Exception):
    """The call does not come from the sender, or not now."""


class PayloadError(Exception):
    """The call is genuine, but its body is no JSON object."""


def verify(body: bytes, header: str, secrets: Sequence[bytes], *, now: int) -> dict[str, Any]:
    """The object in `body`, if one of `secrets` has signed it lately."""
    try:
        payload = json.loads(body)
    except ValueError as error:
        raise PayloadError("the body is not JSON") from error
    if not isinstance(payload, dict):
        raise PayloadError("the body is not a JSON object")
    pairs = [part.strip().partition("=") for part in header.split(";")]
    timestamps = [value for name, _, value in pairs if name == "ts"]
    macs = [value.encode() for name, _, value in pairs if name == "mac"]
    if len(timestamps) != 1 or not timestamps[0].isdigit() or len(timestamps[0]) > 12:
        raise SignatureError("there must be one timestamp")
    if abs(int(timestamps[0]) - now) > TOLERANCE:
        raise SignatureError("the timestamp is too far from now")
    message = f"{timestamps[0]}\n{json.dumps(payload)}".encode()
    for secret in secrets:
        right = hmac.new(secret, message, hashlib.sha256).hexdigest().encode()
        if any(hmac.compare_digest(mac, right) for mac in macs):
            return payload
    raise SignatureError("no signature is right")
