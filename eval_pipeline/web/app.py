"""The web server: pages, files and the API by address."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from mimetypes import guess_type
from typing import Any
from urllib.parse import parse_qsl

from prometheus_client import CollectorRegistry
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route, compile_path

from eval_pipeline.errors import MendableError
from eval_pipeline.interop.remote.messages import BadPathError, decode_segment
from eval_pipeline.journal.tokens import Tokens
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web import api, openapi
from eval_pipeline.web.auth import API, COOKIE, HEALTH, METRICS, AuthMiddleware, Sessions
from eval_pipeline.web.cache import METRICS_CACHED_S, Answer, PageRenderer
from eval_pipeline.web.health import Health
from eval_pipeline.web.metrics import (
    MEDIA_TYPE,
    DagsterQueue,
    MetricsMiddleware,
    ReadQueue,
    exposed,
    of_now,
    of_results,
)
from eval_pipeline.web.pages import compare, items, leaderboard, models, runs
from eval_pipeline.web.routes import (
    AskedError,
    Links,
    NotThereError,
    Page,
    Parts,
    Row,
    View,
    find_model,
)
from eval_pipeline.web.runs_api import routes as writing_routes
from eval_pipeline.web.templates import render, static_files

LONGEST_FORM = 4_000
RUN = "/runs/{run_id}/{model}/"
Handler = Callable[[Request], Response | Awaitable[Response]]
MakePage = Callable[[View, Parts], Page]
PAGES: Mapping[str, MakePage] = {
    "/": leaderboard.leaderboard,
    "/leaderboard/{suite}/": leaderboard.leaderboard,
    "/leaderboard/{suite}/{category}/": leaderboard.leaderboard,
    "/versions/": leaderboard.versions,
    "/versions/{version}/": leaderboard.old_leaderboard,
    "/models/": models.models,
    "/models/{model}/": models.model,
    "/runs/": runs.runs,
    "/history/{page}/": runs.runs,
    "/runs/{run_id}/": runs.launch,
    RUN: runs.run,
    f"{RUN}report/": models.report,
    f"{RUN}items/{{show}}/{{page}}/": runs.items,
    f"{RUN}item/{{suite}}/{{item_id}}/": items.reply,
    "/items/{suite}/{item_id}/": items.item,
    "/compare/": compare.compare,
    "/compare/{one}/{other}/": compare.pair,
}
_PATTERNS = [(compile_path(address)[0], make) for address, make in PAGES.items()]


def find_page(path: str) -> tuple[MakePage, Parts]:
    """Return what makes the page at a path, and the decoded parts of the path."""
    for pattern, make in _PATTERNS:
        if found := pattern.match(f"/{path}"):
            return make, {name: decode_segment(part) for name, part in found.groupdict().items()}
    raise NotThereError(f"There is no page {path}.")


def no_queue(_: Settings) -> None:
    """Stand in for Dagster's queue where it is not read."""


def build_app(settings: Settings, queue: ReadQueue = no_queue) -> Starlette:
    """Return the application that `evals view` serves; `queue` reads Dagster's queue."""
    renderer = PageRenderer(settings)
    tokens = Tokens(settings.tokens)
    sessions, requests = Sessions(tokens), CollectorRegistry()
    routes = [
        Route(HEALTH, _health(Health(settings))),
        Route(METRICS, _metrics(renderer, requests, DagsterQueue(settings, queue))),
        *(Route(address, _cached(renderer.page, make)) for address, make in PAGES.items()),
        Route(f"{RUN}progress.json", _cached(renderer.document, _progress)),
        Route("/items/{suite}/{item_id}/image.{form}", _cached(renderer.answer, _image)),
        Route("/static/{name}", _static()),
        Route("/login", _login(sessions), methods=["GET", "POST"]),
        Route("/api/", _cached(renderer.page, openapi.documentation)),
        Route(openapi.ADDRESS, _cached(renderer.document, openapi.openapi)),
        *(Route(one.address, _cached(renderer.document, one.make)) for one in api.DOCUMENTS),
        *writing_routes(settings, tokens, renderer.warehouse),
    ]
    auth = Middleware(
        AuthMiddleware,
        hosts=settings.web.hosts,
        sessions=None if settings.web.public else sessions,
    )
    handlers = {Exception: _failed, HTTPException: _refused, MendableError: _missing}
    before = [Middleware(MetricsMiddleware, registry=requests), auth]
    return Starlette(routes=routes, middleware=before, exception_handlers=handlers)  # type: ignore[arg-type]


def _health(health: Health) -> Handler:
    async def show(_: Request) -> Response:
        report = await health.report()
        status = 200 if report.is_well else 503
        return JSONResponse(report.as_json(), status, {"Cache-Control": "no-store"})

    return show


def _metrics(renderer: PageRenderer, requests: CollectorRegistry, queue: DagsterQueue) -> Handler:
    def show(_: Request) -> Response:
        published = renderer.answer(METRICS, QueryParams(), _published, METRICS_CACHED_S)
        now = of_now(renderer.settings, renderer.tail.at_work())
        text = exposed([*now, *queue.families(), *requests.collect()])
        return Response(published.body + text.encode(), headers={"Content-Type": MEDIA_TYPE})

    return show


def _published(view: View) -> Answer:
    return Answer.of(exposed(of_results(view.db)).encode(), MEDIA_TYPE)


def _cached(answered: Callable[..., Answer], make: Callable[[View, Parts], Any]) -> Handler:
    """Serve a page or a document, as `answered` makes it of what `make` returns."""

    def show(request: Request) -> Response:
        path, parts = request.url.path.removeprefix("/"), _parts(request)
        return _sent(request, answered(path, request.query_params, lambda view: make(view, parts)))

    return show


def _progress(view: View, at: Parts) -> Row:
    found = view.tail.of(at["run_id"], find_model(view, at["model"]))
    if found is None:
        raise NotThereError("There is no such run.")
    return asdict(found)


def _image(view: View, at: Parts) -> Answer:
    return Answer.of(items.image(view, at), f"image/{at['form']}")


def _static() -> Handler:
    files = {
        name: Answer.of(content, str(guess_type(name)[0]))
        for name, content in static_files().items()
    }

    async def show(request: Request) -> Response:
        if (found := files.get(request.path_params["name"])) is None:
            raise HTTPException(404)
        return _sent(request, found)

    return show


def _login(sessions: Sessions) -> Handler:
    async def show(request: Request) -> Response:
        words = ""
        if request.method == "POST":
            session = await run_in_threadpool(sessions.begin, await _token(request))
            if session is not None:
                response = RedirectResponse("./", 303)
                secure = request.url.scheme == "https"
                response.set_cookie(
                    COOKIE, session, httponly=True, samesite="strict", secure=secure
                )
                return response
            words = "That token does not open these results."
        page = Page("login.html", "Who are you?", {"words": words})
        return Response(render(page, Links("login")), 401 if words else 200, media_type="text/html")

    return show


async def _token(request: Request) -> str:
    """Return the token that was typed into the form."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LONGEST_FORM:
            raise HTTPException(413, "No token is that long.")
    return dict(parse_qsl(content.decode("ascii", "replace"))).get("token", "")


def _parts(request: Request) -> Parts:
    """Return the decoded parts of the address; one that no name is encoded as is not found."""
    try:
        return {name: decode_segment(part) for name, part in request.path_params.items()}
    except BadPathError:
        raise HTTPException(404) from None


def _sent(request: Request, answer: Answer) -> Response:
    """Return the answer, packed if the client can unpack it, and only if it is not cached there."""
    headers = {"ETag": answer.tag, "Cache-Control": "private, no-cache", "Vary": "Accept-Encoding"}
    if answer.tag in request.headers.get("if-none-match", ""):
        return Response(None, 304, headers)
    if answer.packed is not None and "gzip" in request.headers.get("accept-encoding", ""):
        packed = {**headers, "Content-Encoding": "gzip"}
        return Response(answer.packed, headers=packed, media_type=answer.media_type)
    return Response(answer.body, headers=headers, media_type=answer.media_type)


async def _missing(request: Request, error: MendableError) -> Response:
    return _trouble(request, 400 if isinstance(error, AskedError) else 404, str(error))


async def _refused(request: Request, error: HTTPException) -> Response:
    words = "There is no such page." if error.status_code == 404 else str(error.detail)  # noqa: PLR2004
    return _trouble(request, error.status_code, words, error.headers)


async def _failed(request: Request, error: Exception) -> Response:
    # The details are in the server's log: the error's own words may hold anything.
    return _trouble(request, 500, f"{type(error).__name__}: see the server's log.")


def _trouble(
    request: Request, status: int, words: str, headers: Mapping[str, str] | None = None
) -> Response:
    if request.url.path.startswith(API):
        return JSONResponse({"error": words}, status, headers)
    page = Page("error.html", "That did not work", {"words": words})
    links = Links(request.url.path.removeprefix("/"))
    return Response(render(page, links), status, headers, media_type="text/html")
