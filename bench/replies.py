"""What the load server sends: replies as bytes that were made before they are needed."""

import json
from collections.abc import Mapping, Sequence

JUDGE = "bench/judge"
_VERDICT = json.dumps(
    {"extracted_answer": "42", "reasoning": "SIMULATED.", "correct": True, "confidence": 80}
)
_PIECES = (
    "This reply is SIMULATED. ",
    "It takes a few events to arrive, as those of real models do, and it is as long as a short ",
    "chain of thought: first what is given, then what is asked, then how one leads to the other, ",
    "then a check of the result by another way. ",
    "Answer: 42. Confidence: 80%",
)
_USAGE = {"prompt_tokens": 120, "completion_tokens": 60, "total_tokens": 180}
_STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nx-simulated: true\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


class Replies:
    """One model's replies; all that is left to do is to put in the question's mark."""

    def __init__(self, model: str, failing: int | None) -> None:
        judge = model == JUDGE
        pieces = (_VERDICT,) if judge else _PIECES
        self.failure = _failure(failing) if failing else None
        # A verdict must be JSON and nothing else.
        self._says_mark = not judge
        self._first = _event(model, {"role": "assistant", "content": "[["}).split(b"[[")
        self._events = _events(model, pieces)
        self._whole = _whole(model, f"[[{''.join(pieces)}").split(b"[[")

    def stream(self, mark: bytes) -> tuple[bytes, ...]:
        """The pieces of a chunked stream, one per event; the first event names the question."""
        before, after = self._first
        return (_STREAM_HEAD + _chunk(before + self._said(mark) + after), *self._events)

    def whole(self, mark: bytes) -> tuple[bytes]:
        """The same reply in one piece."""
        before, after = self._whole
        return (response(b"200 OK", before + self._said(mark) + after),)

    def _said(self, mark: bytes) -> bytes:
        return mark + b". " if self._says_mark else b""


def response(status: bytes, body: bytes) -> bytes:
    """A response that says of itself that it is simulated."""
    return (
        b"HTTP/1.1 %b\r\nx-simulated: true\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%b" % (status, len(body), body)
    )


def json_response(value: object) -> bytes:
    """The value as a response."""
    return response(b"200 OK", json.dumps(value).encode())


def model_list(models: Sequence[str]) -> dict[str, object]:
    """What /v1/models answers: these and the judge."""
    prices = {"prompt": "0.0000001", "completion": "0.0000004"}
    listed = [
        {"id": model, "object": "model", "simulated": True, "pricing": prices}
        for model in (*models, JUDGE)
    ]
    return {"object": "list", "data": listed}


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(model: str, delta: Mapping[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    about = {"id": "simulated", "object": "chat.completion.chunk", "created": 0, "model": model}
    return b"data: %b\n\n" % json.dumps({**about, "choices": [choice]}).encode()


def _events(model: str, pieces: Sequence[str]) -> list[bytes]:
    usage = {"id": "simulated", "model": model, "choices": [], "usage": _USAGE}
    events = [
        *(_event(model, {"content": piece}) for piece in pieces),
        _event(model, {}, "stop"),
        b"data: %b\n\n" % json.dumps(usage).encode(),
        b"data: [DONE]\n\n",
    ]
    *chunks, last = map(_chunk, events)
    return [*chunks, last + b"0\r\n\r\n"]


def _whole(model: str, text: str) -> bytes:
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    about = {"id": "simulated", "object": "chat.completion", "created": 0, "model": model}
    return json.dumps({**about, "choices": [choice], "usage": _USAGE}).encode()


def _failure(status: int) -> bytes:
    error = {"message": f"SIMULATED failure {status}.", "type": "simulated", "code": None}
    return response(b"%d Simulated" % status, json.dumps({"error": error}).encode())
