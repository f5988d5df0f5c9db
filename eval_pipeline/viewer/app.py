"""The server: pages, files and the API, each made by somebody else."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict
from typing import Any
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from eval_pipeline.errors import MendableError
from eval_pipeline.remote.routes import routes as writing_routes
from eval_pipeline.remote.tokens import Tokens
from eval_pipeline.settings import Settings
from eval_pipeline.viewer import api, describing
from eval_pipeline.viewer.addresses import PAGES, RUN, Parts
from eval_pipeline.viewer.counting import Counted, Requests
from eval_pipeline.viewer.exposition import MEDIA_TYPE, exposed
from eval_pipeline.viewer.gauges import of_now, of_results
from eval_pipeline.viewer.guarding import API, COOKIE, HEALTH, METRICS, Guard, Sessions
from eval_pipeline.viewer.health import Health
from eval_pipeline.viewer.kept import Answer
from eval_pipeline.viewer.links import BadPathError, Links, meant
from eval_pipeline.viewer.making import MakeDocument, Maker, find_model
from eval_pipeline.viewer.page import AskedError, NotThereError, Page, View
from eval_pipeline.viewer.pages.items import image
from eval_pipeline.viewer.queue import Queue
from eval_pipeline.viewer.rendering import TYPES, render, static_files

LONGEST_FORM = 4_000
Handler = Callable[[Request], Awaitable[Response]]


def build_app(settings: Settings) -> Starlette:
    """All that `evals view` serves."""
    maker = Maker(settings)
    tokens = Tokens(settings.tokens)
    sessions, requests = Sessions(tokens), Requests()
    routes = [
        Route(HEALTH, _health(Health(settings))),
        Route(METRICS, _metrics(maker, requests, Queue(settings))),
        *(Route(address, _page(maker, make)) for address, make in PAGES.items()),
        Route(f"{RUN}progress.json", _progress(maker)),
        Route("/items/{suite}/{item_id}/image.{form}", _image(maker)),
        Route("/static/{name}", _static()),
        Route("/login", _login(sessions), methods=["GET", "POST"]),
        Route("/api/", _page(maker, lambda view, _: describing.documentation(view))),
        Route(describing.ADDRESS, _document(maker, lambda view, _: describing.openapi(view))),
        *(Route(one.address, _document(maker, one.make)) for one in api.DOCUMENTS),
        *writing_routes(settings, tokens, maker.warehouse),
    ]
    guard = Middleware(
        Guard,
        hosts=settings.web.hosts,
        sessions=None if settings.web.public else sessions,
    )
    told = {Exception: _failed, HTTPException: _refused, MendableError: _missing}
    before = [Middleware(Counted, requests=requests), guard]
    return Starlette(routes=routes, middleware=before, exception_handlers=told)  # type: ignore[arg-type]


def _health(health: Health) -> Handler:
    async def show(request: Request) -> Response:
        del request
        report = await health.report()
        status = 200 if report.is_well else 503
        return JSONResponse(report.as_json(), status, {"Cache-Control": "no-store"})

    return show


def _metrics(maker: Maker, requests: Requests, queue: Queue) -> Handler:
    def make() -> str:
        published = maker.kept_text(METRICS, lambda view: exposed(of_results(view.db)))
        at_work = maker.follower.at_work()
        now = [*of_now(maker.settings, at_work), *queue.families(), *requests.families()]
        return published + exposed(now)

    async def show(request: Request) -> Response:
        del request
        return Response(await run_in_threadpool(make), headers={"Content-Type": MEDIA_TYPE})

    return show


def _page(maker: Maker, make: Callable[[View, Parts], Page]) -> Handler:
    async def show(request: Request) -> Response:
        path, parts = request.url.path.removeprefix("/"), _parts(request)
        answer = await run_in_threadpool(
            maker.kept_page, path, request.query_params, lambda view: make(view, parts)
        )
        return _sent(request, answer)

    return show


def _document(maker: Maker, make: Callable[[View, Parts], Any]) -> Handler:
    async def show(request: Request) -> Response:
        parts = _parts(request)
        return await _made(maker, request, lambda view: make(view, parts))

    return show


def _progress(maker: Maker) -> Handler:
    async def show(request: Request) -> Response:
        parts = _parts(request)

        def make(view: View) -> Any:
            found = view.follower.of(parts["run_id"], find_model(view, parts["model"]))
            if found is None:
                raise NotThereError("There is no such run.")
            return asdict(found)

        return await _made(maker, request, make)

    return show


async def _made(maker: Maker, request: Request, make: MakeDocument) -> Response:
    path = request.url.path.removeprefix("/")
    answer = await run_in_threadpool(maker.kept_document, path, request.query_params, make)
    return _sent(request, answer)


def _image(maker: Maker) -> Handler:
    async def show(request: Request) -> Response:
        parts = _parts(request)

        def make() -> bytes:
            with maker.look(Links("")) as view:
                return image(view, parts["suite"], parts["item_id"], parts["form"])

        return Response(await run_in_threadpool(make), media_type=f"image/{parts['form']}")

    return show


def _static() -> Handler:
    files = {
        name: Answer.of(content, TYPES[name.rpartition(".")[2]])
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
                return _let_in(request, session)
            words = "That token does not open these results."
        page = Page("login.html", "Who are you?", {"words": words})
        return Response(render(page, Links("login")), 401 if words else 200, media_type="text/html")

    return show


async def _token(request: Request) -> str:
    """What was typed into the form."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > LONGEST_FORM:
            raise HTTPException(413, "No token is that long.")
    return dict(parse_qsl(content.decode("ascii", "replace"))).get("token", "")


def _let_in(request: Request, session: str) -> Response:
    response = RedirectResponse("./", 303)
    secure = request.url.scheme == "https"
    response.set_cookie(COOKIE, session, httponly=True, samesite="strict", secure=secure)
    return response


def _parts(request: Request) -> Parts:
    """The parts of the address; what can not be meant by anything is nowhere."""
    try:
        return {name: meant(part) for name, part in request.path_params.items()}
    except BadPathError:
        raise HTTPException(404) from None


def _sent(request: Request, answer: Answer) -> Response:
    """Packed for who can unpack it, and only if it is not known already."""
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
    # What happened stands in the server's log; nobody knows what the error says.
    return _trouble(request, 500, f"{type(error).__name__}: see the server's log.")


def _trouble(
    request: Request, status: int, words: str, headers: Mapping[str, str] | None = None
) -> Response:
    if request.url.path.startswith(API):
        return JSONResponse({"error": words}, status, headers)
    page = Page("error.html", "That did not work", {"words": words})
    links = Links(request.url.path.removeprefix("/"))
    return Response(render(page, links), status, headers, media_type="text/html")
