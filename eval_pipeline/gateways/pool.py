"""The gateways of the settings as open connections; the simulated one is started when used."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Self

import aiohttp
import httpx

from eval_pipeline.gateways.client import CONNECT_TIMEOUT_S, HttpProvider, open_session
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.gateways.dialects.base import Dialect
from eval_pipeline.gateways.dialects.messages import MESSAGES
from eval_pipeline.gateways.dialects.openai import CHAT_COMPLETIONS, RESPONSES
from eval_pipeline.gateways.limits import SharedRateLimit
from eval_pipeline.gateways.rate_limiter import Meters, RateLimiter
from eval_pipeline.records.item import Item
from eval_pipeline.records.model import DialectName, Model
from eval_pipeline.settings.gateway import Gateway, RateLimits
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline.settings.settings import Settings

DIALECTS: Mapping[DialectName, Dialect] = {
    "chat_completions": CHAT_COMPLETIONS,
    "responses": RESPONSES,
    "messages": MESSAGES,
}


class Gateways:
    """Pooled connections per gateway, opened when first needed, all closed together."""

    def __init__(self, settings: Settings, demo_items: Iterable[Item] = ()) -> None:
        self._settings = settings
        self._demo_items = demo_items
        self._demo: str | None = None
        self._sessions: dict[tuple[str, bool], aiohttp.ClientSession] = {}
        self._meters: dict[str, Meters] = {}
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._open.aclose()

    def provider(self, model: Model) -> HttpProvider:
        """Return the client of the model's gateway; without its key nothing is asked."""
        gateway = self._settings.gateway(model.gateway)
        variable = gateway.key_variable
        if gateway.needs_key and self._settings.key(variable) is None:
            raise SettingsError(
                f"The gateway '{gateway.name}' needs a key: put {variable}=… into .env "
                "or into the environment."
            )
        address = gateway.dialect_address(model.dialect) or self._start_demo()
        return HttpProvider(
            session=self._session(gateway.name, secure=address.startswith("https:")),
            address=address,
            dialect=DIALECTS[model.dialect],
            headers=self._headers(gateway, model.dialect),
            timeout_s=self._settings.requests.timeout_s,
            redact=self._settings.redact,
        )

    def pace(self, model: Model, most: int) -> RateLimiter:
        """Return the model's rate limiter: its own limits, and its gateway's with all others."""
        gateway = self._settings.gateway(model.gateway)
        if gateway.name not in self._meters:
            self._meters[gateway.name] = self._metered(gateway, "gateway", gateway.name)
        shared = self._meters[gateway.name]
        own = self._metered(self._settings.override(model), "model", model.id)
        return RateLimiter(
            most, meters=[own, shared], longest_wait_s=self._settings.requests.total_s
        )

    @asynccontextmanager
    async def lent_client(self, gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
        """Open a client to list the gateway's models with; another host does not get its key."""
        base = httpx.URL(gateway.address or self._start_demo())
        listed = httpx.URL(gateway.list_address or "")
        known = not listed.host or listed.host == base.host
        headers = self._headers(gateway, gateway.own_dialect) if known else {}
        timeout = httpx.Timeout(None, connect=CONNECT_TIMEOUT_S)
        async with httpx.AsyncClient(base_url=base, headers=headers, timeout=timeout) as client:
            yield client

    def _headers(self, gateway: Gateway, dialect: DialectName) -> dict[str, str]:
        key = self._settings.key(gateway.key_variable)
        return {
            "user-agent": "eval-pipeline",
            "content-type": "application/json",
            **DIALECTS[dialect].headers(key.get_secret_value() if key else None),
        }

    def _metered(self, limits: RateLimits, *names: str) -> Meters:
        """Return limits that hold over all processes that share the folder of data."""
        meters = Meters(limits, SharedRateLimit(self._settings.data, *names))
        if meters:
            self._open.push_async_callback(meters.settle)
        return meters

    def _session(self, gateway: str, *, secure: bool) -> aiohttp.ClientSession:
        if (gateway, secure) not in self._sessions:
            session = open_session(secure=secure)
            self._open.push_async_callback(session.close)
            self._sessions[gateway, secure] = session
        return self._sessions[gateway, secure]

    def _start_demo(self) -> str:
        if self._demo is None:
            demo = DemoGateway(tuple(self._demo_items))
            self._demo = self._open.enter_context(demo).base_url
        return self._demo
