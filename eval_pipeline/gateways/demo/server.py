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
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eval_pipeline.gateways.demo import analyst, coder, replies
from eval_pipeline.gateways.demo.chat_completions import Asked, ChatBody, Reply, Spoken, error_body
from eval_pipeline.gateways.demo.faults import NO_FAULTS, FaultKind, Faults
from eval_pipeline.gateways.demo.messages import MessagesBody, messages_error_body
from eval_pipeline.gateways.demo.responses import ResponsesBody
from eval_pipeline.records.base import now
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import Item

LARGEST_BODY = 32 * 1024 * 1024
_STREAM = [(b"content-type", b"text/event-stream; charset=utf-8")]
_Parsed = TypeVar("_Parsed", bound=BaseModel)


async def parse(receive: Receive, shape: type[_Parsed]) -> _Parsed:
    """The body as a record; an HTTPException says what is wrong with it."""
    try:
        return shape.model_validate_json(await _read(receive))
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in problem["loc"]) or "the body"
        raise HTTPException(400, f"Malformed request, {where}: {problem['msg']}.") from None


async def _read(receive: Receive) -> bytes:
    data, size, more = bytearray(), 0, True
    # Read to the end even if it is too long: a client that is still sending hears no answer.
    while more:
        message = await receive()
        part, more = message.get("body", b""), message.get("more_body", False)
        size += len(part)
        data += part if size <= LARGEST_BODY else b""
    if size > LARGEST_BODY:
        raise HTTPException(413, f"The body has {size} bytes; at most {LARGEST_BODY} are taken.")
    return bytes(data)


def sent(reply: Reply, drip_s: float) -> ASGIApp:
    """The reply as a response; if it is cut, uvicorn closes the connection before the end."""
    if reply.body.stream:
        events, headers = reply.events(), _STREAM
        # Written as one piece where nothing is to come between: that costs a fraction.
        pieces = events if drip_s else [b"".join(events)]
    else:
        whole = reply.whole()
        pieces = [whole[: len(whole) // 2] if reply.is_cut else whole]
        length = str(len(whole)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]

    async def send_pieces(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for number, piece in enumerate(pieces, start=1):
            more = reply.is_cut or number < len(pieces)
            await send({"type": "http.response.body", "body": piece, "more_body": more})
            if more and drip_s:
                await asyncio.sleep(drip_s)

    return send_pieces


async def hang(_scope: Scope, receive: Receive, _send: Send) -> None:
    """Says nothing until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def reset(scope: Scope, receive: Receive, send: Send) -> None:
    """Ends the connection the hard way, before any byte."""
    # ASGI has no word for this; uvicorn's `receive` belongs to what holds the transport.
    transport: asyncio.Transport = receive.__self__.transport  # type: ignore[attr-defined]
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
    await hang(scope, receive, send)


_ABOUT = "The simulated gateway of eval_pipeline: its models are SIMULATED. See GET /v1/models.\n"
_TOO_LONG = "A simulated fault: the prompt is too long for this model's maximum context length."
_HOST = "127.0.0.1"
_MESSAGES = "/v1/messages"
_TOO_MANY = 429
_SHAPES: dict[str, type[ChatBody | ResponsesBody | MessagesBody]] = {
    "/v1/chat/completions": ChatBody,
    "/v1/responses": ResponsesBody,
    _MESSAGES: MessagesBody,
}


class PortTaken(OSError):  # noqa: N818
    """Another program listens where the gateway was told to."""


class _Refused(HTTPException):
    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(status, message, headers)
        self.param, self.code = param, code


class _Server(uvicorn.Server):
    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # A client that waits for a hanging reply would keep the server from stopping.
        for connection in list(self.server_state.connections):
            connection.transport.abort()
        await super().shutdown(sockets)


class DemoGateway:
    """The server, in a thread of its own; its counters tell what it was asked, and how."""

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
        self._other_routes = self._routes()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.misbehave(faults)

    def misbehave(self, faults: Faults) -> None:
        """Replaces the faults; every request counts as not sent before."""
        self._faults, self._attempts = faults, Counter[str]()

    @property
    def base_url(self) -> str:
        return f"http://{_HOST}:{self._port}/v1"

    def start(self) -> Self:
        """Returns when the port answers."""
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
        """Ends the server, whatever it is doing."""
        if self._server:
            self._server.should_exit = self._server.force_exit = True
        self.wait()
        self._server = self._thread = None

    def wait(self) -> None:
        """Returns when the server has ended."""
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
        """Questions take the short way: routing them cost more than answering."""
        shape = _SHAPES.get(scope["path"]) if scope["method"] == "POST" else None
        if shape is None:
            await self._other_routes(scope, receive, send)
            return
        try:
            respond = await self._respond(await parse(receive, shape), scope)
        except HTTPException as error:
            respond = self._refusal(scope, error)
        await respond(scope, receive, send)

    def _routes(self) -> Starlette:
        routes = [
            Route("/", self._about),
            Route("/v1/health", self._health),
            Route("/v1/models", self._models),
            Route("/v1/faults", self._control, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: self._refuse})

    async def _about(self, _request: Request) -> Response:
        return PlainTextResponse(_ABOUT)

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, request: Request) -> Response:
        self._authorise(request.scope)
        entries = [mind.listed() for mind in self._minds.values()]
        return JSONResponse({"object": "list", "data": entries})

    async def _control(self, request: Request) -> Response:
        self._authorise(request.scope)
        if not self._allow_control:
            raise HTTPException(403, "This gateway was started without allow_control=True.")
        self.misbehave(await parse(request.receive, Faults))
        return JSONResponse(self._faults.model_dump(mode="json"))

    async def _respond(self, asked: Asked, scope: Scope) -> ASGIApp:
        body = asked.chat
        mind = self._minds.get(body.model)
        item = self._questions.find(body.asked) if mind and not mind.judges else None
        self.requests[body.model] += 1
        self.seen[body.model, replies.question_hash(item.question if item else body.asked)] += 1
        self._authorise(scope)
        with self._counted(body):
            fault = await self._fault(body)
        if fault is FaultKind.HANG:
            return hang
        if fault is FaultKind.RESET:
            return reset
        if self._faults.refused(body.model, body.wanted):
            raise _Refused(400, f"This server does not take '{body.wanted}'.", param=body.wanted)
        text = self._text(_checked(body, mind), body, item, scope)
        cost = self._faults.cost_usd
        spoken = Spoken(next(self._numbers), int(time.time()), text, fault, cost)
        return sent(asked.reply(spoken), self._faults.drip(body.model))

    @contextlib.contextmanager
    def _counted(self, body: ChatBody) -> Iterator[None]:
        """One of those that are being answered at the moment, unless they are too many."""
        faults, model = self._faults, body.model
        self.at_once[model] += 1
        try:
            if faults.is_too_many(model, self.at_once[model]):
                headers = faults.retry_after_header(_TOO_MANY, now(), body.content_hash)
                raise _Refused(_TOO_MANY, "Too many requests at once.", headers=headers)
            self.most_at_once[model] = max(self.most_at_once[model], self.at_once[model])
            yield
        finally:
            self.at_once[model] -= 1

    async def _fault(self, body: ChatBody) -> FaultKind | None:
        """Waits as long as the server is slow and raises what is an HTTP error."""
        faults, content = self._faults, body.content_hash
        attempt = self._attempts[content]
        self._attempts[content] += 1
        if delay := faults.delay_s(body.model, content, attempt):
            await asyncio.sleep(delay)
        fault = faults.decide(body.model, content, attempt)
        if fault and fault.kind is FaultKind.CONTEXT_TOO_LONG:
            raise _Refused(400, _TOO_LONG, code="context_length_exceeded")
        if fault and fault.status:
            headers = faults.retry_after_header(fault.status, now(), content)
            raise _Refused(fault.status, "A simulated fault.", headers=headers)
        return fault.kind if fault else None

    def _text(self, mind: replies.Mind, body: ChatBody, item: Item | None, scope: Scope) -> str:
        if mind.judges:
            text = replies.judge_reply(body.asked)
            asked_before = self._attempts[body.content_hash] - 1
            if self._faults.flickers(body.model, body.content_hash, asked_before):
                text = replies.contrary(text)
        else:
            text = self._answer(mind, body, item)
        if not self._faults.echo_key:
            return text
        for mark in (replies.REPLY_MARK, replies.JUDGE_MARK, analyst.ANALYST_MARK):
            text = text.replace(mark, f"{mark} your key is {json.dumps(_key(scope))[1:-1]};", 1)
        return text

    def _answer(self, mind: replies.Mind, body: ChatBody, item: Item | None) -> str:
        if isinstance(item, CodingTask):
            return coder.answer(mind, item, body.seed)
        return replies.answer(mind, item, self._questions.answers, body.seed)

    def _authorise(self, scope: Scope) -> None:
        if self._api_key is not None and not hmac.compare_digest(
            _key(scope).encode(), self._api_key.encode()
        ):
            raise HTTPException(401, "Incorrect API key provided.")
        if scope["path"] == _MESSAGES and not _header(scope, b"anthropic-version"):
            raise HTTPException(400, "anthropic-version: this header is required.")

    async def _refuse(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        return self._refusal(request.scope, error)

    def _refusal(self, scope: Scope, error: HTTPException) -> Response:
        status, message = error.status_code, error.detail
        if self._faults.echo_key:
            message += f" Your key is {_key(scope)}."
        if scope["path"] == _MESSAGES:
            body = messages_error_body(status, message)
        elif isinstance(error, _Refused):
            body = error_body(status, message, error.param, error.code)
        else:
            body = error_body(status, message)
        return JSONResponse(body, status, error.headers)


def _key(scope: Scope) -> str:
    if scope["path"] == _MESSAGES and (key := _header(scope, b"x-api-key")):
        return key
    return _header(scope, b"authorization").removeprefix("Bearer ")


def _header(scope: Scope, name: bytes) -> str:
    found = (value for other, value in scope["headers"] if other == name)
    return next(found, b"").decode("latin-1")


def _checked(body: ChatBody, mind: replies.Mind | None) -> replies.Mind:
    if mind is None:
        raise HTTPException(404, f"The model '{body.model}' does not exist; see GET /v1/models.")
    if param := body.unsupported(mind):
        message = f"Unsupported value: this model does not take '{param}' as sent."
        raise _Refused(400, message, param=param)
    return mind


def serve(items: Sequence[Item], *, faults: Faults = NO_FAULTS, port: int = 0) -> None:
    """Runs the gateway until Ctrl+C; its faults can be changed while it runs."""
    with (
        contextlib.suppress(KeyboardInterrupt),
        DemoGateway(items, faults=faults, port=port, allow_control=True) as gateway,
    ):
        print(f"{gateway.base_url} answers; its models are SIMULATED (Ctrl+C ends)", flush=True)
        gateway.wait()
