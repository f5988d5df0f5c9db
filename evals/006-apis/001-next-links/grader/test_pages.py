"""What reading a paged API must and must not do."""

from typing import Any

import httpx
import pytest
from pages import PageError, iter_records

BASE = "https://api.example.test/v1"
FIRST = f"{BASE}/orders"


class Server:
    """Pages by their address; any other address is a 404."""

    def __init__(self, pages: dict[str, Any]) -> None:
        self.pages = pages
        self.requested: list[str] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        assert request.method == "GET"
        self.requested.append(str(request.url))
        assert len(self.requested) < 20, "it goes round in circles"
        page = self.pages.get(str(request.url), httpx.Response(404))
        return page if isinstance(page, httpx.Response) else httpx.Response(200, json=page)

    def client(self, **options: Any) -> httpx.Client:
        transport = httpx.MockTransport(self)
        headers = {"Authorization": "Bearer secret"}
        return httpx.Client(transport=transport, base_url=BASE, headers=headers, **options)


def page(*ids: int, **more: Any) -> dict[str, Any]:
    return {"records": [{"id": each} for each in ids], **more}


def ids(server: Server, path: str = "/orders", **options: Any) -> list[int]:
    with server.client() as client:
        return [record["id"] for record in iter_records(client, path, **options)]


def test_a_single_page_is_read_with_its_parameters() -> None:
    server = Server({f"{FIRST}?size=2&state=open+now": page(1, 2)})
    assert ids(server, params={"size": "2", "state": "open now"}) == [1, 2]
    assert len(server.requested) == 1


@pytest.mark.parametrize("last", [{}, {"next": None}])
def test_pages_are_followed_to_the_last_one_in_order(last: dict[str, Any]) -> None:
    pages = {
        FIRST: page(5, 1, next=f"{FIRST}?cursor=b"),
        f"{FIRST}?cursor=b": page(4, next=f"{FIRST}?cursor=c"),
        f"{FIRST}?cursor=c": page(1, 2, **last),
    }
    server = Server(pages)
    assert ids(server) == [5, 1, 4, 1, 2]
    assert server.requested == list(pages)


def test_a_page_without_records_is_not_the_end() -> None:
    server = Server(
        {
            FIRST: page(next="?cursor=b"),
            f"{FIRST}?cursor=b": page(next="?cursor=c"),
            f"{FIRST}?cursor=c": page(3),
        }
    )
    assert ids(server) == [3]


def test_no_records_at_all_are_no_error() -> None:
    assert ids(Server({FIRST: page()})) == []


def test_a_link_is_complete_and_is_not_given_the_parameters_again() -> None:
    link = f"{FIRST}?cursor=a%2Fb%3D%3D&flag"
    server = Server({f"{FIRST}?size=2": page(1, next=link), link: page(2)})
    assert ids(server, params={"size": "2"}) == [1, 2]
    assert server.requested[1] == link


@pytest.mark.parametrize(
    ("link", "meaning"),
    [
        ("/v1/orders?cursor=b", f"{FIRST}?cursor=b"),
        ("/v2/orders?cursor=b", "https://api.example.test/v2/orders?cursor=b"),
        ("?cursor=b", f"{FIRST}?cursor=b"),
        ("orders?cursor=b", f"{FIRST}?cursor=b"),
        ("orders/more", f"{FIRST}/more"),
        ("//api.example.test/v1/orders?cursor=b", f"{FIRST}?cursor=b"),
        ("https://api.example.test:443/v1/orders?cursor=b", f"{FIRST}?cursor=b"),
    ],
)
def test_a_relative_link_is_relative_to_its_page(link: str, meaning: str) -> None:
    server = Server({f"{FIRST}?size=2": page(1, next=link), meaning: page(2)})
    assert ids(server, params={"size": "2"}) == [1, 2]
    assert server.requested == [f"{FIRST}?size=2", meaning]


def test_a_link_is_relative_to_the_page_it_was_on_not_to_the_first_one() -> None:
    server = Server(
        {
            FIRST: page(1, next="archive/2024?cursor=b"),
            f"{BASE}/archive/2024?cursor=b": page(2, next="2023"),
            f"{BASE}/archive/2023": page(3),
        }
    )
    assert ids(server) == [1, 2, 3]


def test_a_link_is_relative_to_where_a_redirect_has_led() -> None:
    moved = "https://api.example.test/v2/sales/orders"
    server = Server(
        {
            FIRST: httpx.Response(307, headers={"Location": moved}),
            moved: page(1, next="orders?cursor=b"),
            f"{moved}?cursor=b": page(2),
        }
    )
    with server.client(follow_redirects=True) as client:
        assert [record["id"] for record in iter_records(client, "/orders")] == [1, 2]


def test_pages_are_requested_only_when_their_records_are_wanted() -> None:
    server = Server({FIRST: page(1, 2, next="?cursor=b"), f"{FIRST}?cursor=b": page(3)})
    with server.client() as client:
        records = iter_records(client, "/orders")
        assert len(server.requested) == 0
        assert [next(records)["id"], next(records)["id"]] == [1, 2]
        assert len(server.requested) == 1
        assert next(records)["id"] == 3
        assert len(server.requested) == 2


@pytest.mark.parametrize(
    "link",
    [
        "https://evil.example/v1/orders?cursor=b",
        "//evil.example/v1/orders?cursor=b",
        "http://api.example.test/v1/orders?cursor=b",
        "https://api.example.test:8443/v1/orders?cursor=b",
        "https://api.example.test.evil.example/v1/orders?cursor=b",
        "https://api.example.test@evil.example/v1/orders?cursor=b",
    ],
)
def test_credentials_are_not_sent_to_another_origin(link: str) -> None:
    requested: list[httpx.URL] = []

    def anywhere(request: httpx.Request) -> httpx.Response:
        requested.append(request.url)
        first = len(requested) == 1
        return httpx.Response(200, json=page(1, next=link) if first else page(2))

    with httpx.Client(transport=httpx.MockTransport(anywhere), base_url=BASE) as client:
        records = iter_records(client, "/orders")
        assert next(records) == {"id": 1}
        with pytest.raises(PageError):
            next(records)
    assert len(requested) == 1


@pytest.mark.parametrize("back", ["?size=1", "?cursor=b", "/v1/orders?cursor=b"])
def test_a_link_back_is_an_error_rather_than_an_endless_loop(back: str) -> None:
    server = Server(
        {
            f"{FIRST}?size=1": page(1, next="?cursor=b"),
            f"{FIRST}?cursor=b": page(2, next=back),
        }
    )
    with server.client() as client:
        records = iter_records(client, "/orders", {"size": "1"})
        assert [next(records)["id"], next(records)["id"]] == [1, 2]
        with pytest.raises(PageError):
            next(records)
    assert len(server.requested) == 2


def test_an_error_status_comes_after_the_records_before_it() -> None:
    server = Server({FIRST: page(1, 2, next="?cursor=b"), f"{FIRST}?cursor=b": httpx.Response(503)})
    with server.client() as client:
        records = iter_records(client, "/orders")
        assert [next(records)["id"], next(records)["id"]] == [1, 2]
        with pytest.raises(httpx.HTTPStatusError):
            next(records)
