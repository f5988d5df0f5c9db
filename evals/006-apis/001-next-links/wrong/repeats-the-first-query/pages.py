"""Reads a paged HTTP API, following its links."""

from collections.abc import Iterator, Mapping
from typing import Any

import httpx


class PageError(Exception):
    """A page has a link that must not be followed."""


def iter_records(
    client: httpx.Client, path: str, params: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """All records of the page at `path` and of those that follow it."""
    url: httpx.URL | str = path
    seen: set[httpx.URL] = set()
    while True:
        response = client.get(url, params=params)
        response.raise_for_status()
        seen.add(response.request.url)
        page = response.json()
        yield from page["records"]
        if not page.get("next"):
            return
        url = response.url.join(page["next"])
        if (url.scheme, url.host, url.port) != (
            response.url.scheme,
            response.url.host,
            response.url.port,
        ):
            raise PageError("another origin")
        if url in seen:
            raise PageError("requested before")
