"""Tokens that let others read and write: of each secret only a hash is kept."""

import hmac
import os
import re
import secrets
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from pathlib import Path

from filelock import FileLock, Timeout
from pydantic import AwareDatetime, SecretStr, ValidationError

from eval_pipeline.errors import MendableError
from eval_pipeline.journal.files import sync, write_all
from eval_pipeline.records.base import Record, now

PREFIX = "evals_"
LONGEST_SECRET = 200
NOTED_EVERY = timedelta(minutes=1)
"""That a token is in use is written down no more often than this."""
LONGEST_WAIT_S = 10.0
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class TokenError(MendableError):
    """A token can not be made, found or read; the message says what to do."""


class TokenScope(StrEnum):
    """What a token is for; each has to be said, but who may write may also read."""

    READ = "read"
    WRITE = "write"
    PRODUCTION = "production"


class Token(Record):
    """What is known of a token, which is everything but its secret."""

    name: str
    scopes: tuple[TokenScope, ...]
    sha256: str
    created_at: AwareDatetime
    last_used_at: AwareDatetime | None = None


class _Kept(Record):
    """The file."""

    tokens: tuple[Token, ...] = ()


@dataclass(frozen=True)
class Tokens:
    """The tokens in one file, which only its owner can read."""

    path: Path

    def create(self, name: str, scopes: Collection[TokenScope]) -> SecretStr:
        """The secret of a new token: this once, and never again."""
        if not _NAME.fullmatch(name):
            raise TokenError(
                "The name of a token is up to 64 letters, digits, dots, dashes and underscores."
            )
        if not scopes:
            raise TokenError("Say what the token is for: --scope read, write or production.")
        secret = PREFIX + secrets.token_urlsafe(32)
        chosen = tuple(scope for scope in TokenScope if scope in scopes)
        token = Token(name=name, scopes=chosen, sha256=_hashed(secret), created_at=now())
        with self._locked():
            kept = self.list()
            if any(one.name == name for one in kept):
                raise TokenError(f"There is a token {name} already: choose another name.")
            self._write([*kept, token])
        return SecretStr(secret)

    def list(self) -> list[Token]:
        """Every token, the oldest first."""
        try:
            return list(_Kept.model_validate_json(self.path.read_bytes()).tokens)
        except FileNotFoundError:
            return []
        except (ValidationError, OSError):
            raise TokenError(
                f"{self.path} can not be read as tokens: restore it, or delete it and create "
                "the tokens anew."
            ) from None

    def revoke(self, name: str) -> None:
        """From now on nobody gets in with it."""
        with self._locked():
            kept = self.list()
            left = [one for one in kept if one.name != name]
            if len(left) == len(kept):
                known = ", ".join(one.name for one in kept) or "none"
                raise TokenError(f"There is no token of that name; there are: {known}.")
            self._write(left)

    def check(self, secret: str) -> Token | None:
        """The token of that secret, if there is one."""
        if len(secret) > LONGEST_SECRET:
            return None
        found, hashed = None, _hashed(secret)
        # All of them, so that the time it takes tells nothing.
        for one in self.list():
            if hmac.compare_digest(one.sha256, hashed):
                found = one
        if found is not None and _is_due(found):
            # Whoever may come in does so even where nobody can note it.
            with suppress(OSError, Timeout):
                self._change(found.name, lambda one: one.model_copy(update={"last_used_at": now()}))
        return found

    def _change(self, name: str, change: Callable[[Token], Token]) -> None:
        with self._locked():
            self._write([change(one) if one.name == name else one for one in self.list()])

    @contextmanager
    def _locked(self) -> Iterator[None]:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self.path.with_suffix(".lock"), timeout=LONGEST_WAIT_S, thread_local=False)
        with lock:
            yield

    def _write(self, tokens: Collection[Token]) -> None:
        """As a whole or not at all, and for nobody else to read."""
        content = _Kept(tokens=tuple(tokens)).model_dump_json(indent=2).encode()
        unfinished = self.path.with_name(f".{self.path.name}.{secrets.token_hex(8)}")
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            try:
                write_all(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            unfinished.replace(self.path)
            sync(self.path.parent)
        finally:
            unfinished.unlink(missing_ok=True)


def _is_due(token: Token) -> bool:
    return token.last_used_at is None or now() - token.last_used_at >= NOTED_EVERY


def _hashed(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
