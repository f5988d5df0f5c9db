"""Tokens that grant access to the results; of each secret only a hash is kept."""

import hmac
import re
import secrets
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import AwareDatetime, SecretStr, ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.journal.files import swap_in
from eval_pipeline.records.base import Record, now

PREFIX = "evals_"
LONGEST_SECRET = 200
# The use of a token is written down no more often than this.
NOTED_EVERY = timedelta(minutes=1)
LONGEST_WAIT_S = 10.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class TokenError(MendableError):
    """A token cannot be made, found or read; the message says what to do."""


class TokenScope(StrEnum):
    """The purposes of tokens, each granted by itself; write access includes read access."""

    READ = "read"
    WRITE = "write"
    PRODUCTION = "production"


class Token(Record):
    """A token without its secret."""

    name: str
    scopes: tuple[TokenScope, ...]
    sha256: str
    created_at: AwareDatetime
    last_used_at: AwareDatetime | None = None


class _TokenFile(Record):
    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Tokens:
    """The tokens in one file, which only its owner can read."""

    path: Path

    def create(self, name: str, scopes: Collection[TokenScope]) -> SecretStr:
        """Create a token and return its secret, which is not kept."""
        if not _NAME.fullmatch(name):
            raise TokenError(
                "The name of a token is up to 64 letters, digits, dots, dashes and underscores."
            )
        if not scopes:
            raise TokenError("Say what the token is for: --scope read, write or production.")
        secret = PREFIX + secrets.token_urlsafe(32)
        chosen = tuple(scope for scope in TokenScope if scope in scopes)
        token = Token(name=name, scopes=chosen, sha256=_hashed(secret), created_at=now())
        with self._lock():
            kept = self.list()
            if any(one.name == name for one in kept):
                raise TokenError(f"There is a token {name} already: choose another name.")
            self._write([*kept, token])
        return SecretStr(secret)

    def list(self) -> list[Token]:
        """Return every token, the oldest first."""
        try:
            return list(_TokenFile.model_validate_json(self.path.read_bytes()).tokens)
        except FileNotFoundError:
            return []
        except (ValidationError, OSError):
            raise TokenError(
                f"{self.path} can not be read as tokens: restore it, or delete it and create "
                "the tokens anew."
            ) from None

    def revoke(self, name: str) -> None:
        """Delete the token."""
        with self._lock():
            kept = self.list()
            left = [one for one in kept if one.name != name]
            if len(left) == len(kept):
                known = ", ".join(one.name for one in kept) or "none"
                raise TokenError(f"There is no token of that name; there are: {known}.")
            self._write(left)

    def check(self, secret: str) -> Token | None:
        """Return the token of that secret, if there is one."""
        if len(secret) > LONGEST_SECRET:
            return None
        found, hashed = None, _hashed(secret)
        # All of them, so that the time it takes gives nothing away.
        for one in self.list():
            if hmac.compare_digest(one.sha256, hashed):
                found = one
        if found and (not found.last_used_at or now() - found.last_used_at >= NOTED_EVERY):
            # A valid token is accepted even where its use cannot be noted.
            with suppress(OSError, Timeout), self._lock():
                used = {"last_used_at": now()}
                self._write(
                    one.model_copy(update=used) if one.name == found.name else one
                    for one in self.list()
                )
        return found

    def _lock(self) -> FileLock:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        path = self.path.with_suffix(".lock")
        return FileLock(path, timeout=LONGEST_WAIT_S, thread_local=False)

    def _write(self, tokens: Iterable[Token]) -> None:
        content = _TokenFile(tokens=tuple(tokens)).model_dump_json(indent=2).encode()
        swap_in(self.path, content, secret=True)


def _hashed(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
