"""How the simulated gateway reads a body and sends what it has to, faults of the wire included."""

import asyncio
import socket
import struct
from typing import TypeVar

from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Receive, Scope, Send

from eval_pipeline.gateways.demo.chat_completions import Reply

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
