"""The simulated gateway: a server that replies as configured, faults included."""

import asyncio
import contextlib
import errno
import hmac
import itertools
import json
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Self, TypeVar

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request as HTTPRequest
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eval_pipeline.gateways.demo import analyst, coder, replies
from eval_pipeline.gateways.demo.dialects import DIALECTS, MESSAGES, Dialect, Reply, error_body
from eval_pipeline.gateways.demo.faults import NO_FAULTS, FaultKind, Faults
from eval_pipeline.gateways.demo.requests import Request
from eval_pipeline.records.base import now
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item

LARGEST_BODY = 32 * 1024 * 1024
_HOST = "127.0.0.1"
_ABOUT = "The simulated gateway of eval_pipeline: its models are SIMULATED. See GET /v1/models.\n"
_TOO_LONG = "A simulated fault: the prompt is too long for this model's maximum context length."
_TOO_MANY = 429
_Parsed = TypeVar("_Parsed", bound=BaseModel)


class PortTaken(OSError):  # noqa: N818
    """Another program listens on the gateway's port."""


class _Refused(HTTPException):
    """An error with more about it than a status and a message."""

    def __init__(
        self, status: int, message: str, headers: dict[str, str] | None = None, **about: str
    ) -> None:
        super().__init__(status, message, headers)
        self.about = about


async def _parse(receive: Receive, shape: type[_Parsed]) -> _Parsed:
    """Read the body as a record; an HTTPException says what is wrong with it."""
    data, size, more = bytearray(), 0, True
    # Read to the end even if it is too long: a client that is still sending hears no answer.
    while more:
        message = await receive()
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        data += part if size <= LARGEST_BODY else b""
    if size > LARGEST_BODY:
        raise HTTPException(413, f"The body has {size} bytes; at most {LARGEST_BODY} are taken.")
    try:
        return shape.model_validate_json(bytes(data))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"]) or "the body"
        raise HTTPException(400, f"Malformed request, {where}: {problem['msg']}.") from None


def _response(reply: Reply, drip_s: float) -> ASGIApp:
    """Return the reply as a response; of one that is cut, uvicorn closes the connection early."""
    is_cut = reply.fault is FaultKind.CUT_STREAM
    if reply.request.stream:
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        # Written as one piece where nothing is to come between: that costs a fraction.
        pieces = reply.events() if drip_s else [b"".join(reply.events())]
    else:
        whole = reply.whole()
        pieces = [whole[: len(whole) // 2] if is_cut else whole]
        length = str(len(whole)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]

    async def send_pieces(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, piece in enumerate(pieces, start=1):
            more = is_cut or number < len(pieces)
            await send({"type": "http.response.body", "body": piece, "more_body": more})
            if more and drip_s:
                await asyncio.sleep(drip_s)

    return send_pieces


async def _hang(_scope: Scope, receive: Receive, _send: Send) -> None:
    """Send nothing until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reset(scope: Scope, receive: Receive, send: Send) -> None:
    """Reset the connection before any byte."""
    # ASGI has no word for this; uvicorn's `receive` belongs to what holds the transport.
    transport: asyncio.Transport = receive.__self__.transport  # type: ignore[attr-defined]
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
    await _hang(scope, receive, send)


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A client that waits for a hanging reply would keep the server from stopping.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


class DemoGateway:
    """The server, in a thread of its own; its counters show what it was asked, and how."""

    def __init__(
        self,
        items: Sequence[Item],
        *,
        models: Mapping[str, replies.Mind] = replies.MINDS,
        faults: Faults = NO_FAULTS,
        port: int = 0,
        api_key: str | None = None,
        allow_control: bool = False,
    ) -> None:
        self.requests: Counter[str] = Counter()
        self.seen: Counter[tuple[str, str]] = Counter()
        self.at_once: Counter[str] = Counter()
        self.most_at_once: Counter[str] = Counter()
        self._questions, self._minds = replies.Questions(items), models
        self._port = port
        self._api_key, self._allow_control = api_key, allow_control
        self._numbers = itertools.count(1)
        routes = [
            Route("/", PlainTextResponse(_ABOUT), methods=["GET"]),
            Route("/v1/health", JSONResponse({"status": "ok"}), methods=["GET"]),
            Route("/v1/models", self._models),
            Route("/v1/faults", self._control, methods=["POST"]),
        ]
        refused = {HTTPException: self._refuse}
        self._other_routes = Starlette(routes=routes, exception_handlers=refused)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.misbehave(faults)

    def misbehave(self, faults: Faults) -> None:
        """Replace the faults; every request counts as not sent before."""
        self._faults, self._attempts = faults, Counter[str]()

    @property
    def base_url(self) -> str:
        return f"http://{_HOST}:{self._port}/v1"

    def start(self) -> Self:
        """Return when the port answers."""
        listener = self._listen()
        config = uvicorn.Config(
            self._app,
            interface="asgi3",  # uvicorn does not see it in a bound method
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            ws="none",
            timeout_keep_alive=60,
            headers=[("x-simulated", "true")],
        )
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([listener],), daemon=True)
        self._thread.start()
        while not self._server.started:
            if not self._thread.is_alive():
                raise RuntimeError("The simulated gateway ended before it could listen.")
            time.sleep(0.002)
        return self

    def stop(self) -> None:
        """End the server, whatever it is doing."""
        if self._server:
            self._server.should_exit = self._server.force_exit = True
        self.wait()
        self._server = self._thread = None

    def wait(self) -> None:
        """Return when the server has ended."""
        if self._thread:
            self._thread.join()

    __enter__ = start

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _listen(self) -> socket.socket:
        try:
            listener = socket.create_server((_HOST, self._port), backlog=2048)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTaken(
                error.errno,
                f"Port {self._port} of {_HOST} is in use: stop the program that listens "
                "there, or choose another port (0 takes any free one).",
            ) from None
        self._port = listener.getsockname()[1]
        return listener

    async def _app(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer questions without the router, which costs more than answering."""
        dialect = DIALECTS.get(scope["path"]) if scope["method"] == "POST" else None
        if dialect is None:
            await self._other_routes(scope, receive, send)
            return
        try:
            request = await _parse(receive, dialect.request)
            respond = await self._respond(dialect, request, scope)
        except HTTPException as error:
            respond = self._refusal(scope, error)
        await respond(scope, receive, send)

    async def _models(self, request: HTTPRequest) -> Response:
        self._authorise(request.scope)
        entries = [mind.listed() for mind in self._minds.values()]
        return JSONResponse({"object": "list", "data": entries})

    async def _control(self, request: HTTPRequest) -> Response:
        self._authorise(request.scope)
        if not self._allow_control:
            raise HTTPException(403, "This gateway was started without allow_control=True.")
        self.misbehave(await _parse(request.receive, Faults))
        return JSONResponse(self._faults.model_dump(mode="json"))

    async def _respond(self, dialect: Dialect, request: Request, scope: Scope) -> ASGIApp:
        model = request.model
        mind = self._minds.get(model)
        item = self._questions.find(request.asked) if mind and not mind.judges else None
        self.requests[model] += 1
        self.seen[model, replies.question_hash(item.question if item else request.asked)] += 1
        self._authorise(scope)
        with self._counted(request):
            fault = await self._fault(request)
        if fault is FaultKind.HANG:
            return _hang
        if fault is FaultKind.RESET:
            return _reset
        if self._faults.refused(model, request.wanted):
            message = f"This server does not take '{request.wanted}'."
            raise _Refused(400, message, param=request.wanted)
        if mind is None:
            raise HTTPException(404, f"The model '{model}' does not exist; see GET /v1/models.")
        if param := request.unsupported(mind):
            message = f"Unsupported value: this model does not take '{param}' as sent."
            raise _Refused(400, message, param=param)
        text = "" if fault is FaultKind.EMPTY else self._text(mind, request, item, scope)
        number, created, cost = next(self._numbers), int(time.time()), self._faults.cost_usd
        reply = dialect.reply(request, text, number, created, fault, cost)
        return _response(reply, self._faults.drip(model))

    @contextlib.contextmanager
    def _counted(self, request: Request) -> Iterator[None]:
        """Count the request among those being answered, or refuse it if they are too many."""
        faults, model = self._faults, request.model
        self.at_once[model] += 1
        try:
            if faults.is_too_many(model, self.at_once[model]):
                headers = faults.retry_after_header(_TOO_MANY, now(), request.content_hash)
                raise _Refused(_TOO_MANY, "Too many requests at once.", headers=headers)
            self.most_at_once[model] = max(self.most_at_once[model], self.at_once[model])
            yield
        finally:
            self.at_once[model] -= 1

    async def _fault(self, request: Request) -> FaultKind | None:
        """Wait as long as the server is slow, and raise a fault that is an HTTP error."""
        faults, content = self._faults, request.content_hash
        attempt = self._attempts[content]
        self._attempts[content] += 1
        if delay := faults.delay_s(request.model, content, attempt):
            await asyncio.sleep(delay)
        fault = faults.decide(request.model, content, attempt)
        if fault and fault.kind is FaultKind.CONTEXT_TOO_LONG:
            raise _Refused(400, _TOO_LONG, code="context_length_exceeded")
        if fault and fault.status:
            headers = faults.retry_after_header(fault.status, now(), content)
            raise _Refused(fault.status, "A simulated fault.", headers=headers)
        return fault.kind if fault else None

    def _text(self, mind: replies.Mind, request: Request, item: Item | None, scope: Scope) -> str:
        if mind.judges:
            text = replies.judge_reply(request.asked)
            asked_before = self._attempts[request.content_hash] - 1
            if self._faults.flickers(request.model, request.content_hash, asked_before):
                text = replies.contrary(text)
        elif isinstance(item, CodingTask):
            text = coder.answer(mind, item, request.seed)
        else:
            text = replies.answer(mind, item, self._questions.answers, request.seed)
        if self._faults.echo_key:
            key = json.dumps(_key(scope))[1:-1]
            for mark in (replies.REPLY_MARK, replies.JUDGE_MARK, analyst.ANALYST_MARK):
                text = text.replace(mark, f"{mark} your key is {key};", 1)
        return text

    def _authorise(self, scope: Scope) -> None:
        if self._api_key is not None and not hmac.compare_digest(
            _key(scope).encode(), self._api_key.encode()
        ):
            raise HTTPException(401, "Incorrect API key provided.")
        if scope["path"] == MESSAGES and not Headers(scope=scope).get("anthropic-version"):
            raise HTTPException(400, "anthropic-version: this header is required.")

    async def _refuse(self, request: HTTPRequest, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        return self._refusal(request.scope, error)

    def _refusal(self, scope: Scope, error: HTTPException) -> Response:
        message = error.detail
        if self._faults.echo_key:
            message += f" Your key is {_key(scope)}."
        about = error.about if isinstance(error, _Refused) else {}
        body = error_body(scope["path"], error.status_code, message, **about)
        return JSONResponse(body, error.status_code, error.headers)


def _key(scope: Scope) -> str:
    headers = Headers(scope=scope)
    if scope["path"] == MESSAGES and (key := headers.get("x-api-key")):
        return key
    return headers.get("authorization", "").removeprefix("Bearer ")


def serve(items: Sequence[Item], *, faults: Faults = NO_FAULTS, port: int = 0) -> None:
    """Run the gateway until Ctrl+C; its faults can be changed while it runs."""
    with (
        contextlib.suppress(KeyboardInterrupt),
        DemoGateway(items, faults=faults, port=port, allow_control=True) as gateway,
    ):
        print(f"{gateway.base_url} answers; its models are SIMULATED (Ctrl+C ends)", flush=True)
        gateway.wait()
