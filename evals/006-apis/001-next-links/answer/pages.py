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
    request = client.build_request("GET", path, params=params)
    seen = {request.url}
    while True:
        response = client.send(request)
        response.raise_for_status()
        page = response.json()
        yield from page["records"]
        if page.get("next") is None:
            return
        url = _follow(response.url, page["next"])
        if url in seen:
            raise PageError(f"{url} was requested before")
        seen.add(url)
        request = client.build_request("GET", url)


def _follow(page: httpx.URL, link: str) -> httpx.URL:
    """The address that `link` means on `page`, if it may be told the client's credentials."""
    url = page.join(link)
    if _origin(url) != _origin(page):
        raise PageError(f"{page} links to another origin: {url}")
    return url


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port
