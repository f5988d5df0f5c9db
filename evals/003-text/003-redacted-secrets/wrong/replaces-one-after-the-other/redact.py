"""Removes secrets from text."""

import json
from urllib.parse import quote

MASK = "[redacted]"


def redact(text: str, secrets: list[str]) -> str:
    spellings: set[str] = set()
    for secret in secrets:
        if secret.strip():
            spellings |= {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}
    for spelling in sorted(spellings, key=lambda s: (-len(s), s)):
        text = text.replace(spelling, MASK)
    return text
