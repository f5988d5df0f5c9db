"""Reads a paged HTTP API, following its links."""

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urljoin, urlsplit

import httpx


class PageError(Exception):
    """A page has a link that must not be followed."""


def iter_records(
    client: httpx.Client, path: str, params: Mapping[str, str] | None = None
) -> Iterator[dict[str, Any]]:
    """All records of the page at `path` and of those that follow it."""
    records: list[dict[str, Any]] = []
    response = client.get(path, params=params).raise_for_status()
    seen = {str(response.request.url)}
    while True:
        page = response.json()
        records.extend(page["records"])
        if not page.get("next"):
            return iter(records)
        url = urljoin(str(response.url), page["next"])
        if urlsplit(url)[:2] != urlsplit(str(response.url))[:2]:
            raise PageError("another origin")
        if url in seen:
            raise PageError("requested before")
        seen.add(url)
        response = client.get(url).raise_for_status()
