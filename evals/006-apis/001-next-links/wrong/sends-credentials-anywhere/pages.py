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
    response = client.get(path, params=params)
    seen = {response.request.url}
    while True:
        response.raise_for_status()
        page = response.json()
        yield from page["records"]
        if not page.get("next"):
            return
        url = response.url.join(page["next"])
        if url.host != response.url.host:
            raise PageError("another host")
        if url in seen:
            raise PageError("requested before")
        seen.add(url)
        response = client.get(url)
