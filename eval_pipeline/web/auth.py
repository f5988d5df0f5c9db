"""Authentication of readers, names this server answers to, and security headers for browsers."""

import secrets
from collections.abc import Collection
from contextlib import suppress
from ipaddress import ip_address

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from eval_pipeline.journal.tokens import Tokens
from eval_pipeline.web.routes import Links
from eval_pipeline.web.templates import POLICY

HEALTH, METRICS = "/health", "/metrics"
OPEN = ("/login", "/static/", HEALTH)
"""Open without a token, for logging in and for health checks."""
API = "/api/v1/"
COOKIE = "evals_session"
MOST_SESSIONS = 1_000
READING = ("read", "write", "production")
"""The scopes of tokens that may read: a token for writing may read too."""
HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Sessions:
    """Sessions of browsers that have shown a token; they end with the server."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._secrets: dict[str, str] = {}

    def begin(self, secret: str) -> str | None:
        """Return the name of a new session; None if the token may not read."""
        if not self._opens(secret):
            return None
        while len(self._secrets) >= MOST_SESSIONS:
            self._secrets.pop(next(iter(self._secrets)))
        session = secrets.token_urlsafe(32)
        self._secrets[session] = secret
        return session

    def allow(self, connection: HTTPConnection) -> bool:
        """Return whether the token of the request or of its session is valid now."""
        kind, _, secret = connection.headers.get("authorization", "").partition(" ")
        if kind.casefold() == "bearer":
            return self._opens(secret.strip())
        known = self._secrets.get(connection.cookies.get(COOKIE, ""))
        return known is not None and self._opens(known)

    def _opens(self, secret: str) -> bool:
        token = self._tokens.check(secret)
        return token is not None and any(scope in READING for scope in token.scopes)


class AuthMiddleware:
    """Refuses requests or passes them on, and adds the security headers."""

    def __init__(
        self, app: ASGIApp, *, hosts: Collection[str], sessions: Sessions | None = None
    ) -> None:
        self._app = app
        self._hosts = [host.casefold() for host in hosts]
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        refusal = self._refusal(scope)
        await (refusal or self._app)(scope, receive, send_guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        if not self._is_ours(Headers(scope=scope).get("host", "")):
            return PlainTextResponse(
                "This server does not go by that name: see [web] hosts in the settings.", 421
            )
        path: str = scope["path"]
        # Writing needs a token of its own, whoever may read.
        if self._sessions is None or path.startswith(OPEN) or scope["method"] == "POST":
            return None
        if self._sessions.allow(HTTPConnection(scope)):
            return None
        if path.startswith((API, METRICS)):
            refusal = {"error": "Reading needs a token: Authorization: Bearer <token>."}
            return JSONResponse(refusal, 401, {"WWW-Authenticate": "Bearer"})
        return RedirectResponse(Links(path.removeprefix("/")).to("login"), 303)

    def _is_ours(self, header: str) -> bool:
        """Return whether the host is ours: other names may resolve to this machine in an attempt
        to read results through a visitor's browser (DNS rebinding); numbers cannot."""
        host = header[1:].partition("]")[0] if header.startswith("[") else header.partition(":")[0]
        host = host.casefold().rstrip(".")
        with suppress(ValueError):
            ip_address(host)
            return True
        # A setting is a name, *.name for all below it, or * for all.
        return host == "localhost" or any(
            one in ("*", host) or (one.startswith("*.") and host.endswith(one[1:]))
            for one in self._hosts
        )
