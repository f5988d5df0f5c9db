"""The API for runs evaluated elsewhere: who may come in, what they say, and what they are told."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from eval_pipeline.errors import MendableError
from eval_pipeline.interop.remote.messages import (
    JSON,
    LINES,
    MOST_BYTES,
    MOST_BYTES_OF_ITEMS,
    OF_A_RUN,
    RUNS_PATH,
    VERSIONS_PATH,
    BadPathError,
    Judgements,
    Predictions,
    Refusal,
    RefusedError,
    RunToOpen,
    decode_segment,
    encode_segment,
    parse_hashed,
    parsed,
)
from eval_pipeline.interop.remote.receive import Receiver, busy
from eval_pipeline.interop.remote.versions import keep_version
from eval_pipeline.journal import RUNS, BusyError
from eval_pipeline.journal.tokens import Tokens, TokenScope
from eval_pipeline.records.base import Record
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.settings import Settings
from eval_pipeline.web.requests import receive

BUSY = "Somebody else is at work on this: try again later."
NOT_NOW = "The server can not do this now; its log says why. Nothing is lost: try again later."

log = logging.getLogger(__name__)
M = TypeVar("M", bound=Record)
Answer = Callable[[Request], Awaitable[Response]]


def routes(settings: Settings, tokens: Tokens, warehouse: Warehouse) -> list[Route]:
    """What writes to this deployment, each by token only."""
    # Nowhere else is the journal of production open, and every way to it asks for a token.
    journal = replace(warehouse.journal, read_only=False)
    door = AuthenticatedRoutes(settings, tokens, Receiver(replace(warehouse, journal=journal)))
    answers = {
        VERSIONS_PATH: door.keep_version,
        RUNS_PATH: door.open_run,
        f"{OF_A_RUN}/predictions": door.take_predictions,
        f"{OF_A_RUN}/judgements": door.take_judgements,
        f"{OF_A_RUN}/close": door.close,
    }
    return [
        Route(path, _told(door.admitted(answer)), methods=["POST"])
        for path, answer in answers.items()
    ]


@dataclass(frozen=True)
class AuthenticatedRoutes:
    settings: Settings
    tokens: Tokens
    receiver: Receiver

    def admitted(self, answer: Answer) -> Answer:
        """Nothing is read of a request before its token is known to be good."""

        async def endpoint(request: Request) -> Response:
            await run_in_threadpool(self._admit, request.headers.get("authorization", ""))
            return await answer(request)

        return endpoint

    def _admit(self, authorization: str) -> None:
        kind, _, secret = authorization.partition(" ")
        token = self.tokens.check(secret.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise RefusedError(
                "Writing needs a token that is valid: Authorization: Bearer …",
                401,
                {"WWW-Authenticate": "Bearer"},
            )
        is_production = self.settings.production is not None
        needed = TokenScope.PRODUCTION if is_production else TokenScope.WRITE
        if needed not in token.scopes:
            raise RefusedError(f"This token has not the scope {needed}.", 403)

    async def keep_version(self, request: Request) -> Response:
        self.settings.data.mkdir(parents=True, exist_ok=True)
        # A file without a name: whatever happens, it is gone afterwards.
        with TemporaryFile(dir=self.settings.data) as file:
            await receive(request, file.write, most=MOST_BYTES_OF_ITEMS, media_type=LINES)
            kept = await run_in_threadpool(keep_version, self.receiver.journal, file)
        return _said(kept, status=201 if kept.state == "new" else 200)

    async def open_run(self, request: Request) -> Response:
        wanted = await _read(request, RunToOpen)
        opened = await run_in_threadpool(self.receiver.open_run, wanted)
        return _said(opened, status=201 if opened.state == "new" else 200)

    async def take_predictions(self, request: Request) -> Response:
        run_id, model = await self._named(request)
        batch = await _read(request, Predictions)
        take = self.receiver.take_predictions
        return _said(await run_in_threadpool(take, run_id, model, batch.predictions))

    async def take_judgements(self, request: Request) -> Response:
        run_id, model = await self._named(request)
        batch = await _read(request, Judgements)
        take = self.receiver.take_judgements
        return _said(await run_in_threadpool(take, run_id, model, batch.judgements))

    async def close(self, request: Request) -> Response:
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
            run_id, model = decode_segment(run_part), decode_segment(model_part)
        except BadPathError:
            run_id, model = "", ""
        if parse_hashed(model_part) is not None:
            known = (one for one in journal.parts(RUNS) if encode_segment(one) == model_part)
            model = next(known, "")
        if not (run_id and model and journal.exists(RUNS, model, run_id)):
            raise RefusedError("There is no such run of this model here: open it first.", 404)
        return run_id, model


def _told(answer: Answer) -> Answer:
    """What goes wrong is told in a sentence, which names no files."""

    async def endpoint(request: Request) -> Response:
        try:
            return await answer(request)
        except ClientDisconnect:
            return _refused(RefusedError("The request ended before its body did."))
        except RefusedError as refusal:
            return _refused(refusal)
        except BusyError:
            return _refused(busy(BUSY))
        except MendableError as error:
            log.error("%s", error)
            return _said(Refusal(error=NOT_NOW), status=503)
        except Exception:
            log.exception("A request could not be answered.")
            return _said(Refusal(error=NOT_NOW), status=500)

    return endpoint


async def _read(request: Request, form: type[M]) -> M:
    content = bytearray()
    await receive(request, content.extend, most=MOST_BYTES, media_type=JSON)
    return await run_in_threadpool(parsed, bytes(content), form.model_validate)


def _refused(refusal: RefusedError) -> Response:
    response = _said(Refusal(error=str(refusal)), status=refusal.status)
    response.headers.update(refusal.headers or {})
    return response


def _said(record: Record, status: int = 200) -> Response:
    return JSONResponse(record.model_dump(mode="json"), status)
