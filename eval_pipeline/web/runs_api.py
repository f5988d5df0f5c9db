"""The API for runs evaluated elsewhere: who may come in, what they say, and what they are told."""

import logging
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import Any, NamedTuple, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from eval_pipeline.errors import MendableError
from eval_pipeline.interop.remote import messages
from eval_pipeline.interop.remote.receive import Receiver, busy
from eval_pipeline.interop.remote.versions import keep_version
from eval_pipeline.journal import RUNS, BusyError
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.records.base import Record
from eval_pipeline.records.coding import CodingTask
from eval_pipeline.records.item import BenchmarkVersion, ExamQuestion
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings

BUSY = "Somebody else is at work on this: try again later."
NOT_NOW = "The server can not do this now; its log says why. Nothing is lost: try again later."
GZIP = 16 + zlib.MAX_WBITS
MOST_DIGITS = 19

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Record)


def routes(settings: Settings, tokens: Tokens, warehouse: Warehouse) -> list[Route]:
    """What writes to this deployment, each by token only."""
    # Nowhere else is the journal of production open, and every way to it asks for a token.
    journal = replace(warehouse.journal, read_only=False)
    door = AuthenticatedRoutes(settings, tokens, Receiver(replace(warehouse, journal=journal)))
    return [Route(one.path, door.endpoint(one.answer), methods=["POST"]) for one in WRITES]


@dataclass(frozen=True)
class AuthenticatedRoutes:
    settings: Settings
    tokens: Tokens
    receiver: Receiver

    def endpoint(self, answer: "Answer") -> Callable[[Request], Awaitable[Response]]:
        """Check the token before the body is read; report failures in words that name no files."""

        async def endpoint(request: Request) -> Response:
            try:
                await run_in_threadpool(self._admit, request.headers.get("authorization", ""))
                return await answer(self, request)
            except ClientDisconnect:
                return _refused(messages.RefusedError("The request ended before its body did."))
            except messages.RefusedError as refusal:
                return _refused(refusal)
            except BusyError:
                return _refused(busy(BUSY))
            except MendableError as error:
                log.error("%s", error)
                return _said(messages.Refusal(error=NOT_NOW), status=503)
            except Exception:
                log.exception("A request could not be answered.")
                return _said(messages.Refusal(error=NOT_NOW), status=500)

        return endpoint

    def _admit(self, authorization: str) -> None:
        kind, _, secret = authorization.partition(" ")
        token = self.tokens.check(secret.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise messages.RefusedError(
                "Writing needs a token that is valid: Authorization: Bearer …",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        is_production = self.settings.production is not None
        needed = TokenScope.PRODUCTION if is_production else TokenScope.WRITE
        if needed not in token.scopes:
            raise messages.RefusedError(f"This token has not the scope {needed}.", 403)

    async def keep_version(self, request: Request) -> Response:
        """Keep a benchmark version.

        The first line is the version, each of the others an item of its suites; those whose items
        are here need none. The hashes have to be right.
        """
        self.settings.data.mkdir(parents=True, exist_ok=True)
        # A file without a name: whatever happens, it is gone afterwards.
        with TemporaryFile(dir=self.settings.data) as file:
            await _receive(
                request, file.write, most=messages.MOST_BYTES_OF_ITEMS, media_type=messages.LINES
            )
            kept = await run_in_threadpool(keep_version, self.receiver.journal, file)
        return _said(kept, status=201 if kept.state == "new" else 200)

    async def open_run(self, request: Request) -> Response:
        """Open a run of a version that is here; again with the same content changes nothing."""
        wanted = await _read(request, messages.RunToOpen)
        opened = await run_in_threadpool(self.receiver.open_run, wanted)
        return _said(opened, status=201 if opened.state == "new" else 200)

    async def take_predictions(self, request: Request) -> Response:
        """Keep replies, each once by its prediction_id; all of them or none."""
        run_id, model = await self._named(request)
        batch = await _read(request, messages.Predictions)
        take = self.receiver.take_predictions
        return _said(await run_in_threadpool(take, run_id, model, batch.predictions))

    async def take_judgements(self, request: Request) -> Response:
        """Keep verdicts on replies that are here, all of them or none.

        Each is kept once by prediction_id, judge, judge_version and finished_at.
        """
        run_id, model = await self._named(request)
        batch = await _read(request, messages.Judgements)
        take = self.receiver.take_judgements
        return _said(await run_in_threadpool(take, run_id, model, batch.judgements))

    async def close(self, request: Request) -> Response:
        """Show the run with what it has by now; more may follow."""
        run_id, model = await self._named(request)
        return _said(await run_in_threadpool(self.receiver.close, run_id, model))

    async def _named(self, request: Request) -> tuple[str, str]:
        """Id and model of a run that is here, as the path spells them."""
        return await run_in_threadpool(
            self._find, request.path_params["run_id"], request.path_params["model"]
        )

    def _find(self, run_part: str, model_part: str) -> tuple[str, str]:
        journal = self.receiver.journal
        try:
            run_id, model = messages.decode_segment(run_part), messages.decode_segment(model_part)
        except messages.BadPathError:
            run_id, model = "", ""
        if messages.parse_hashed(model_part) is not None:
            known = (
                one for one in journal.parts(RUNS) if messages.encode_segment(one) == model_part
            )
            model = next(known, "")
        if not (run_id and model and journal.exists(RUNS, model, run_id)):
            raise messages.RefusedError(
                "There is no such run of this model here: open it first.", 404
            )
        return run_id, model


Answer = Callable[[AuthenticatedRoutes, Request], Awaitable[Response]]


class Write(NamedTuple):
    """A route, the records that it takes, one of them, and the one that it answers.

    The docstring of `answer` is the summary in the API description.
    """

    path: str
    name: str
    answer: Answer
    taken: tuple[type[Record], ...]
    answered: type[Record]
    media_type: str = messages.JSON


WRITES = (
    Write(
        messages.VERSIONS_PATH,
        "keepBenchmarkVersion",
        AuthenticatedRoutes.keep_version,
        (BenchmarkVersion, ExamQuestion, CodingTask),
        messages.KeptVersion,
        messages.LINES,
    ),
    Write(
        messages.RUNS_PATH,
        "openRun",
        AuthenticatedRoutes.open_run,
        (messages.RunToOpen,),
        messages.OpenedRun,
    ),
    Write(
        f"{messages.OF_A_RUN}/predictions",
        "postPredictions",
        AuthenticatedRoutes.take_predictions,
        (messages.Predictions,),
        messages.Received,
    ),
    Write(
        f"{messages.OF_A_RUN}/judgements",
        "postJudgements",
        AuthenticatedRoutes.take_judgements,
        (messages.Judgements,),
        messages.Received,
    ),
    Write(
        f"{messages.OF_A_RUN}/close", "closeRun", AuthenticatedRoutes.close, (), messages.ClosedRun
    ),
)


class _Unpacker:
    """Writes what it is fed, unpacked, up to a limit of bytes."""

    def __init__(self, write: Callable[[bytes], Any], most: int, encoding: str) -> None:
        self._write = write
        self._most = most
        self._written = 0
        self._gzip = zlib.decompressobj(GZIP) if encoding == "gzip" else None

    def feed(self, data: bytes) -> None:
        """Unpack another piece."""
        if self._gzip is None:
            self._hand_on(data)
            return
        while data:
            # Unpack one byte more than there is room for, to detect a body that is too large.
            room = self._most - self._written + 1
            try:
                self._hand_on(self._gzip.decompress(data, room))
            except zlib.error:
                raise messages.RefusedError("The body is not packed with gzip.") from None
            if self._gzip.unused_data:
                raise messages.RefusedError("After the end of what gzip packed there is more.")
            data = self._gzip.unconsumed_tail

    def finish(self) -> None:
        """Check that the packed body was complete."""
        if self._gzip is not None and not self._gzip.eof:
            raise messages.RefusedError("The body ends before what gzip packed does.")

    def _hand_on(self, data: bytes) -> None:
        self._written += len(data)
        if self._written > self._most:
            raise messages.RefusedError(f"More than {self._most} bytes are not taken at once.", 413)
        self._write(data)


async def _receive(
    request: Request, write: Callable[[bytes], Any], *, most: int, media_type: str
) -> None:
    """Read the body of a request into `write`, unless it is too large or of another type."""
    encoding = _encoding(request, media_type)
    length = request.headers.get("content-length", "")
    if length.isdecimal() and len(length) <= MOST_DIGITS and int(length) > most:
        raise messages.RefusedError(f"More than {most} bytes are not taken at once.", 413)
    unpacker = _Unpacker(write, most, encoding)
    async for data in request.stream():
        await run_in_threadpool(unpacker.feed, data)
    unpacker.finish()


def _encoding(request: Request, media_type: str) -> str:
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if given != media_type:
        raise messages.RefusedError(f"The body has to be {media_type}.", 415)
    encoding = request.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip"):
        raise messages.RefusedError("The body may be packed with gzip, and with nothing else.", 415)
    return encoding


async def _read(request: Request, form: type[M]) -> M:
    content = bytearray()
    await _receive(request, content.extend, most=messages.MOST_BYTES, media_type=messages.JSON)
    return await run_in_threadpool(messages.parsed, bytes(content), form.model_validate)


def _refused(refusal: messages.RefusedError) -> Response:
    response = _said(messages.Refusal(error=str(refusal)), status=refusal.status)
    response.headers.update(refusal.headers or {})
    return response


def _said(record: Record, status: int = 200) -> Response:
    return JSONResponse(record.model_dump(mode="json"), status)
