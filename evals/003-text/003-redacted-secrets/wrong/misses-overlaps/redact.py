"""Removes secrets from text."""

import json
import re
from urllib.parse import quote

MASK = "[redacted]"


def redact(text: str, secrets: list[str]) -> str:
    spellings: set[str] = set()
    for secret in secrets:
        if secret.strip():
            spellings |= {secret, json.dumps(secret)[1:-1], quote(secret, safe="")}
    if not spellings:
        return text
    longest_first = sorted(spellings, key=lambda s: (-len(s), s))
    pattern = "|".join(re.escape(spelling) for spelling in longest_first)
    return re.sub(f"(?:{pattern})+", MASK, text)
