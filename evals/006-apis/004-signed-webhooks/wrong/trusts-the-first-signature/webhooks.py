"""Tells genuine webhook calls from forged and repeated ones."""

import hashlib
import hmac
import json
import re
from collections.abc import Sequence
from typing import Any

TOLERANCE = 300
HEADER = re.compile(r"ts=([0-9]{1,12})\b.*?mac=([0-9a-f]{64})\b", re.ASCII)


class SignatureError(Exception):
    """The call does not come from the sender, or not now."""


class PayloadError(Exception):
    """The call is genuine, but its body is no JSON object."""


def verify(body: bytes, header: str, secrets: Sequence[bytes], *, now: int) -> dict[str, Any]:
    """The object in `body`, if one of `secrets` has signed it lately."""
    match = HEADER.search(header)
    if match is None:
        raise SignatureError("malformed header")
    timestamp, mac = match.groups()
    if now - int(timestamp) > TOLERANCE:
        raise SignatureError("too old")
    message = timestamp.encode() + b"\n" + body
    digests = [hmac.new(secret, message, hashlib.sha256).hexdigest() for secret in secrets]
    if not any(hmac.compare_digest(digest, mac) for digest in digests):
        raise SignatureError("no signature is right")
    try:
        payload = json.loads(body)
    except ValueError as error:
        raise PayloadError("the body is not JSON") from error
    if not isinstance(payload, dict):
        raise PayloadError("the body is not a JSON object")
    return payload
