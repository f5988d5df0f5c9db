"""The simulated gateway: an HTTP server on loopback that speaks OpenAI's dialect."""

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
from collections.abc import Sequence
from typing import Self, TypeVar

import uvicorn
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from eval_pipeline.providers.demo import minds
from eval_pipeline.providers.demo.faults import NO_FAULTS, FaultKind, Faults
from eval_pipeline.providers.demo.wire import ChatBody, Reply, error_body
from eval_pipeline.records import Item, now

LARGEST_BODY = 32 * 1024 * 1024
_ABOUT = "The simulated gateway of eval_pipeline: its models are SIMULATED. See GET /v1/models.\n"
_Parsed = TypeVar("_Parsed", bound=BaseModel)


class PortTaken(OSError):  # noqa: N818
    """Another program listens where the gateway was told to."""


class _Unsupported(HTTPException):
    def __init__(self, param: str) -> None:
        super().__init__(400, f"Unsupported value: this model does not take '{param}' as sent.")
        self.param = param


async def _parse(request: Request, shape: type[_Parsed]) -> _Parsed:
    data, size = bytearray(), 0
    # Read to the end even if it is too long: a client that is still sending hears no answer.
    async for part in request.stream():
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


def _sent(reply: Reply) -> ASGIApp:
    """The reply as a response; if it is cut, uvicorn closes the connection before the end."""
    cut = reply.fault is FaultKind.CUT_STREAM
    if reply.body.stream:
        pieces = reply.events()
        headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
    else:
        whole = reply.whole()
        pieces = [whole[: len(whole) // 2] if cut else whole]
        length = str(len(whole)).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", length)]

    async def send_pieces(_scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        if not cut:
            await send({"type": "http.response.body", "body": b""})

    return send_pieces


async def _hang(_scope: Scope, receive: Receive, _send: Send) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _reset(scope: Scope, receive: Receive, send: Send) -> None:
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
    """The server, in a thread of its own; `requests` and `seen` count what it was asked."""

    def __init__(
        self,
        items: Sequence[Item],
        *,
        faults: Faults = NO_FAULTS,
        host: str = "127.0.0.1",
        port: int = 0,
        api_key: str | None = None,
        allow_control: bool = False,
    ) -> None:
        self.requests: Counter[str] = Counter()
        self.seen: Counter[tuple[str, str]] = Counter()
        self._questions = minds.Questions(items)
        self._host, self._port = host, port
        self._api_key, self._allow_control = api_key, allow_control
        self._ids = itertools.count(1)
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.misbehave(faults)

    def misbehave(self, faults: Faults) -> None:
        """Replaces the faults; every request counts as not sent before."""
        self._faults, self._attempts = faults, Counter[str]()

    @property
    def base_url(self) -> str:
        return f"http://{self._host}:{self._port}/v1"

    def start(self) -> Self:
        """Returns when the port answers."""
        listener = self._listen()
        config = uvicorn.Config(
            self._app(),
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
            listener = socket.create_server((self._host, self._port), backlog=2048)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise PortTaken(
                error.errno,
                f"Port {self._port} of {self._host} is in use: stop the program that listens "
                "there, or choose another port (0 takes any free one).",
            ) from None
        self._port = listener.getsockname()[1]
        return listener

    def _app(self) -> Starlette:
        routes = [
            Route("/", self._about),
            Route("/v1/health", self._health),
            Route("/v1/models", self._models),
            Route("/v1/chat/completions", self._chat, methods=["POST"]),
            Route("/v1/faults", self._control, methods=["POST"]),
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: self._refuse})

    async def _about(self, _request: Request) -> Response:
        return PlainTextResponse(_ABOUT)

    async def _health(self, _request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _models(self, request: Request) -> Response:
        self._authorise(request)
        entries = [mind.listed() for mind in minds.MINDS.values()]
        return JSONResponse({"object": "list", "data": entries})

    async def _control(self, request: Request) -> Response:
        self._authorise(request)
        if not self._allow_control:
            raise HTTPException(403, "This gateway was started without allow_control=True.")
        self.misbehave(await _parse(request, Faults))
        return JSONResponse(self._faults.model_dump(mode="json"))

    async def _chat(self, request: Request) -> ASGIApp:
        body = await _parse(request, ChatBody)
        mind = minds.MINDS.get(body.model)
        item = self._questions.find(body.asked) if mind and not mind.judges else None
        self.requests[body.model] += 1
        self.seen[body.model, minds.question_hash(item.question if item else body.asked)] += 1
        self._authorise(request)
        fault = await self._fault(body)
        if fault is FaultKind.HANG:
            return _hang
        if fault is FaultKind.RESET:
            return _reset
        text = self._text(_checked(body, mind), body, item, _key(request))
        reply_id = f"chatcmpl-{body.content_hash}-{next(self._ids)}"
        return _sent(Reply(body, reply_id, int(time.time()), text, fault))

    async def _fault(self, body: ChatBody) -> FaultKind | None:
        """Waits as long as the server is slow and raises what is an HTTP error."""
        faults, content = self._faults, body.content_hash
        attempt = self._attempts[content]
        self._attempts[content] += 1
        if delay := faults.delay_s(body.model, content, attempt):
            await asyncio.sleep(delay)
        fault = faults.decide(body.model, content, attempt)
        if fault and fault.status:
            headers = faults.retry_after_header(fault.status, now())
            raise HTTPException(fault.status, "A simulated fault.", headers)
        return fault.kind if fault else None

    def _text(self, mind: minds.Mind, body: ChatBody, item: Item | None, key: str) -> str:
        others = self._questions.answers
        text = minds.judge_reply(body.asked) if mind.judges else minds.answer(mind, item, others)
        if not self._faults.echo_key:
            return text
        for mark in (minds.REPLY_MARK, minds.JUDGE_MARK):
            text = text.replace(mark, f"{mark} your key is {json.dumps(key)[1:-1]};", 1)
        return text

    def _authorise(self, request: Request) -> None:
        if self._api_key is None:
            return
        if not hmac.compare_digest(_key(request).encode(), self._api_key.encode()):
            raise HTTPException(401, "Incorrect API key provided.")

    async def _refuse(self, request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            raise error
        message = error.detail
        if self._faults.echo_key:
            message += f" Your key is {_key(request)}."
        body = error_body(error.status_code, message, getattr(error, "param", None))
        return JSONResponse(body, error.status_code, error.headers)


def _key(request: Request) -> str:
    return request.headers.get("authorization", "").removeprefix("Bearer ")


def _checked(body: ChatBody, mind: minds.Mind | None) -> minds.Mind:
    if mind is None:
        raise HTTPException(404, f"The model '{body.model}' does not exist; see GET /v1/models.")
    if param := body.unsupported(mind):
        raise _Unsupported(param)
    return mind


def serve(
    items: Sequence[Item], *, faults: Faults = NO_FAULTS, host: str = "127.0.0.1", port: int = 0
) -> None:
    """Runs the gateway until Ctrl+C; its faults can be changed while it runs."""
    with (
        contextlib.suppress(KeyboardInterrupt),
        DemoGateway(items, faults=faults, host=host, port=port, allow_control=True) as gateway,
    ):
        print(f"{gateway.base_url} answers; its models are SIMULATED (Ctrl+C ends)", flush=True)
        gateway.wait()
