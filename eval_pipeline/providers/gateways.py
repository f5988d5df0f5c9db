"""The gateways of the settings as open connections; the simulated one is started when used."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from types import TracebackType
from typing import Self

import httpx

from eval_pipeline.environment import SettingsError
from eval_pipeline.providers.demo.server import DemoGateway
from eval_pipeline.providers.openai_compatible import OpenAICompatible, http_client
from eval_pipeline.records import Item, Model
from eval_pipeline.settings import Gateway, Settings


class Gateways:
    """One pooled client per gateway, opened when first needed, all closed together."""

    def __init__(self, settings: Settings, demo_items: Sequence[Item] = ()) -> None:
        self._settings = settings
        self._demo_items = demo_items
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._open.aclose()

    def provider(self, model: Model) -> OpenAICompatible:
        """Who answers for the model; without its key nothing is asked."""
        gateway = self._settings.gateway(model.gateway)
        _check_key(gateway, self._settings)
        return OpenAICompatible(
            self.client(gateway), self._settings.requests.timeout_s, self._settings.redact
        )

    def client(self, gateway: Gateway) -> httpx.AsyncClient:
        """The gateway's client, with its address and key in place."""
        if gateway.name not in self._clients:
            address = gateway.address or self._start_demo()
            client = http_client(address, self._settings.key(gateway.key_variable))
            self._open.push_async_callback(client.aclose)
            self._clients[gateway.name] = client
        return self._clients[gateway.name]

    @asynccontextmanager
    async def lent_client(self, gateway: Gateway) -> AsyncIterator[httpx.AsyncClient]:
        """The client to list the gateway's models with; another host does not get its key."""
        base, listed = httpx.URL(gateway.address or ""), httpx.URL(gateway.list_address or "")
        if not listed.host or listed.host == base.host:
            yield self.client(gateway)
            return
        async with http_client(str(base), None) as stranger:
            yield stranger

    def _start_demo(self) -> str:
        return self._open.enter_context(DemoGateway(self._demo_items)).base_url


def _check_key(gateway: Gateway, settings: Settings) -> None:
    variable = gateway.key_variable
    if gateway.needs_key and settings.key(variable) is None:
        raise SettingsError(
            f"The gateway '{gateway.name}' needs a key: put {variable}=… into .env "
            "or into the environment."
        )
