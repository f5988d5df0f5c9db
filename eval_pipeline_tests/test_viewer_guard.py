"""Who may look, by which name, and what browsers are told."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from eval_pipeline.interop.remote.messages import RUNS_PATH, VERSIONS_PATH
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.web.app import build_app
from eval_pipeline_tests.builders import a_warehouse, settings_in


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all of these projects have their results."""
    folder = tmp_path_factory.mktemp("results")
    a_warehouse(folder)
    return folder


@pytest.fixture
def a_web(results: Path, tmp_path: Path) -> Callable[..., TestClient]:
    def made(**web: object) -> TestClient:
        settings = settings_in(tmp_path, web=web, data_dir=str(results))
        return TestClient(build_app(settings), base_url="http://127.0.0.1:8378")

    return made


@pytest.fixture
def tokens(results: Path) -> Iterator[Tokens]:
    tokens = Tokens(results / "tokens.json")
    yield tokens
    tokens.path.unlink()


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *(("127.0.0.1:8378", 200), ("localhost", 200), ("[::1]:80", 200), ("10.1.2.3:8378", 200)),
        *(("results.example.org", 200), ("a.b.example.com", 200), ("RESULTS.example.org.", 200)),
        *(("attacker.example.net", 421), ("example.com", 421), ("xexample.com", 421), ("", 421)),
        *(("127.0.0.1.attacker.net", 421), ("localhost.attacker.net", 421)),
    ],
)
def test_names_that_are_not_ours_are_refused(
    a_web: Callable[..., TestClient], host: str, status: int
) -> None:
    web = a_web(hosts=["results.example.org", "*.example.com"])

    assert web.get("/static/style.css", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "path", ["/", "/static/style.css", "/api/v1/models", "/nothing/", "/login"]
)
def test_browsers_are_told_to_run_nothing_but_our_script(
    a_web: Callable[..., TestClient], path: str
) -> None:
    web = a_web()

    headers = web.get(path).headers

    policy = headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


def test_results_that_are_not_public_need_a_token_of_any_scope(
    a_web: Callable[..., TestClient], tokens: Tokens
) -> None:
    web = a_web(public=False)
    secret = tokens.create("reader", [TokenScope.READ]).get_secret_value()

    refused = web.get("/api/v1/models")
    page = web.get("/models/", follow_redirects=False)
    allowed = web.get("/api/v1/models", headers={"Authorization": f"Bearer {secret}"})

    assert (refused.status_code, refused.headers["www-authenticate"]) == (401, "Bearer")
    assert (page.status_code, page.headers["location"]) == (303, "../login")
    assert (allowed.status_code, len(allowed.json())) == (200, 1)
    assert web.get("/api/v1/models", headers={"Authorization": "Bearer x"}).status_code == 401


def test_people_show_their_token_once_and_no_longer_than_it_is_good(
    a_web: Callable[..., TestClient], tokens: Tokens
) -> None:
    web = a_web(public=False)
    secret = tokens.create("reader", [TokenScope.READ]).get_secret_value()

    wrong = web.post("/login", data={"token": "evals_no"})
    let_in = web.post("/login", data={"token": secret}, follow_redirects=False)
    cookie = let_in.headers["set-cookie"]
    before = web.get("/models/", follow_redirects=False).status_code
    tokens.revoke("reader")
    after = web.get("/models/", follow_redirects=False).status_code

    assert (wrong.status_code, let_in.status_code) == (401, 303)
    assert "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert secret not in cookie and secret not in wrong.text
    assert (before, after) == (200, 303)


def test_a_page_is_sent_packed_and_only_if_it_is_new(a_web: Callable[..., TestClient]) -> None:
    web = a_web()

    first = web.get("/")
    again = web.get("/", headers={"If-None-Match": first.headers["etag"]})
    plain = web.get("/", headers={"Accept-Encoding": "identity"})

    assert first.headers["content-encoding"] == "gzip"
    assert (again.status_code, again.content) == (304, b"")
    assert "content-encoding" not in plain.headers and plain.text == first.text


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"])
@pytest.mark.parametrize("path", ["/api/v1/models", RUNS_PATH, VERSIONS_PATH])
def test_where_reading_needs_a_token_no_method_gets_around_it(
    a_web: Callable[..., TestClient], path: str, method: str
) -> None:
    web = a_web(public=False)

    assert web.request(method, path).status_code == 401


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH"])
def test_pages_can_only_be_read(a_web: Callable[..., TestClient], method: str) -> None:
    web = a_web()

    assert web.request(method, "/models/").status_code == 405
