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
    timestamps: list[str] = []
    macs: list[str] = []
    for part in header.split(";"):
        name, _, value = part.strip().partition("=")
        if name == "ts":
            timestamps.append(value)
        elif name == "mac":
            macs.append(value)
    if len(timestamps) != 1 or not timestamps[0].isdigit():
        raise SignatureError("there must be one timestamp")
    if abs(now - int(timestamps[0])) > TOLERANCE:
        raise SignatureError("the timestamp is too far from now")
    message = timestamps[0].encode() + b"\n" + body
    for secret in secrets:
        right = hmac.new(secret, message, hashlib.sha256).hexdigest()
        if any(hmac.compare_digest(mac, right) for mac in macs):
            break
    else:
        raise SignatureError("no signature is right")
    try:
        payload = json.loads(body)
    except ValueError as error:
        raise PayloadError("the body is not JSON") from error
    if not isinstance(payload, dict):
        raise PayloadError("the body is not a JSON object")
    return payload
