"""Copying runs between deployments, over HTTP or from folder to folder: what is there stays."""

import gzip
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from io import BytesIO
from ipaddress import ip_address
from itertools import chain
from typing import NamedTuple, Self, TypeVar

import httpx
from pydantic import SecretStr, ValidationError

from eval_pipeline.errors import MendableError, RunError
from eval_pipeline.evaluation.state import repeat_if_compacted
from eval_pipeline.gateways.catalog import PreviousCatalog
from eval_pipeline.gateways.limits import RetryPolicy, parse_retry_after
from eval_pipeline.interop.remote import messages
from eval_pipeline.interop.remote.receive import Receiver
from eval_pipeline.journal import JUDGED, PREDICTIONS, RUNS, SIGHTINGS, VERSIONS, Journal
from eval_pipeline.journal.files import as_line
from eval_pipeline.records.base import Record, now
from eval_pipeline.records.item import BenchmarkVersion, Item
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.suites.benchmark import past_items

RETRIES = RetryPolicy(attempts=6, first_wait_s=1.0, longest_wait_s=30.0, total_s=600.0)
TIMEOUT = httpx.Timeout(300.0, connect=20.0)
COMPRESSION_LEVEL = 5
LONGEST_ANSWER = 500
TRANSIENT = {408, 429, 500, 502, 503, 504}
BATCH_BYTES = messages.MOST_BYTES // 4
"""Of one request: less than may be sent, so that little is sent again if the line breaks."""
M = TypeVar("M", bound=Record)
R = TypeVar("R", Prediction, Judgement)


class PushError(MendableError):
    """The server cannot be reached, or does not take what it is sent."""

    wrong_use = False

    def __init__(
        self, message: str, *, transient: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.transient = transient
        self.retry_after = retry_after


class WrongAddressError(MendableError):
    """The address is not one that a token may be sent to."""


def checked_address(address: str, *, insecure_http: bool = False) -> str:
    """Return the server's address without a slash at its end, if a token may be sent there."""
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise WrongAddressError("--to: this is no address; it begins with https://") from None
    if url.scheme not in ("http", "https") or not url.host:
        raise WrongAddressError("--to: the address has to begin with https://")
    if url.userinfo or url.query or url.fragment:
        raise WrongAddressError("--to: the address has to be without user, query and fragment.")
    if url.scheme == "http" and not is_loopback(url.host) and not insecure_http:
        raise WrongAddressError(
            f"Nothing was sent: to {url.host} the token would go unencrypted. Use https://, or "
            "pass --insecure-http on a trusted network."
        )
    return str(url).rstrip("/")


def is_loopback(host: str) -> bool:
    """Return whether the host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Server:
    """A deployment that runs are sent to; its errors never have the token in them."""

    def __init__(
        self,
        address: str,
        token: SecretStr,
        *,
        redact: Callable[[str], str],
        retries: RetryPolicy = RETRIES,
    ) -> None:
        self._redact = redact
        self._retries = retries
        self._client = httpx.Client(
            base_url=address,
            headers={"Authorization": f"Bearer {token.get_secret_value()}"},
            timeout=TIMEOUT,
            # A proxy would see what is not encrypted.
            trust_env=address.startswith("https://"),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def keep_version(
        self, version: BenchmarkVersion, items: Iterable[Item] = ()
    ) -> messages.KeptVersion:
        """Send a benchmark version; items of suites that the server has may be left out."""
        lines = map(as_line, chain[Record]([version], items))
        return self.post(messages.VERSIONS_PATH, messages.KeptVersion, lines, messages.LINES)

    def open_run(self, wanted: messages.RunToOpen) -> messages.OpenedRun:
        """Open the run there, unless it is open."""
        return self.post(messages.RUNS_PATH, messages.OpenedRun, [as_line(wanted)])

    def take_predictions(
        self, run_id: str, model: str, predictions: Sequence[Prediction]
    ) -> messages.Received:
        """Send a batch of predictions of an open run."""
        batch = as_line(messages.Predictions(predictions=tuple(predictions)))
        return self.post(f"{_path(run_id, model)}/predictions", messages.Received, [batch])

    def take_judgements(
        self, run_id: str, model: str, judgements: Sequence[Judgement]
    ) -> messages.Received:
        """Send a batch of verdicts on predictions that were sent before."""
        batch = as_line(messages.Judgements(judgements=tuple(judgements)))
        return self.post(f"{_path(run_id, model)}/judgements", messages.Received, [batch])

    def close(self, run_id: str, model: str) -> messages.ClosedRun:
        """Have the run published there."""
        return self.post(f"{_path(run_id, model)}/close", messages.ClosedRun)

    def post(
        self,
        path: str,
        answer: type[M],
        content: Iterable[bytes] = (),
        media_type: str = messages.JSON,
    ) -> M:
        """Return the server's answer to this content; retry as long as that may help."""
        began, attempt = time.monotonic(), 0
        packed = _packed(content) if content else b""
        headers = {"Content-Type": media_type, "Content-Encoding": "gzip"} if content else {}
        while True:
            attempt += 1
            try:
                return self._post_once(path, answer, packed, headers)
            except PushError as error:
                wait = self._retries.wait_after(
                    attempt,
                    transient=error.transient,
                    retry_after=error.retry_after,
                    jitter=random.random(),  # noqa: S311  (guessing it gains nothing)
                    elapsed_s=time.monotonic() - began,
                )
                if wait is None:
                    raise
            time.sleep(wait)

    def _post_once(self, path: str, answer: type[M], packed: bytes, headers: dict[str, str]) -> M:
        try:
            response = self._client.post(path, content=packed, headers=headers)
        except httpx.TransportError as error:
            message = self._redact(f"The server cannot be reached ({error}).")
            raise PushError(message, transient=True) from None
        if response.is_success:
            with suppress(ValidationError):
                return answer.model_validate_json(response.content)
            raise PushError("The server's answer cannot be parsed: is that its address?")
        message = f"The server answers with status {response.status_code}: is that its address?"
        with suppress(ValidationError):
            said = messages.Refusal.model_validate_json(response.content).error[:LONGEST_ANSWER]
            message = f"The server says ({response.status_code}): {said}"
        retry_after = parse_retry_after(response.headers.get("Retry-After"), now())
        transient = response.status_code in TRANSIENT or retry_after is not None
        raise PushError(self._redact(message), transient=transient, retry_after=retry_after)


def _path(run_id: str, model: str) -> str:
    return messages.OF_A_RUN.format(
        run_id=messages.encode_segment(run_id), model=messages.encode_segment(model)
    )


def _packed(content: Iterable[bytes]) -> bytes:
    """Compress piece by piece: the items of a benchmark are much larger unpacked."""
    packed = BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=COMPRESSION_LEVEL) as file:
        file.writelines(content)
    return packed.getvalue()


class Sent(NamedTuple):
    """Counts of the records that were sent, and of those that are new there."""

    records: int
    new: int


class Pushed(NamedTuple):
    """The result of copying a run."""

    run_id: str
    model: str
    is_new: bool
    planned: int
    predictions: Sent
    judgements: Sent

    @property
    def is_changed(self) -> bool:
        return bool(self.is_new or self.predictions.new or self.judgements.new)


def chosen_runs(found: Sequence[FoundRun], models: Sequence[str]) -> list[FoundRun]:
    """Return the runs of these models, or all of them if none is named."""
    known = {run.model for run in found}
    for model in models:
        if model not in known:
            raise RunError(f"Run {found[0].run_id[:8]} has no model {model}.")
    return [run for run in found if not models or run.model in models]


def push_run(journal: Journal, server: Server, model: str, run_id: str) -> Pushed:
    """Send the run with its benchmark version; after an interruption, send it again."""
    pushed = copy_run(journal, server, model, run_id)
    server.close(run_id, model)
    return pushed


@repeat_if_compacted
def copy_run(source: Journal, to: Server | Receiver, model: str, run_id: str) -> Pushed:
    """Copy the run with its benchmark version; it may be repeated."""
    run = next(source.read_file(RUNS, model, run_id))
    for version in source.read(VERSIONS):
        if version.benchmark_version == run.benchmark_version:
            _copy_version(source, to, version)
    seen = PreviousCatalog.of(source.read(SIGHTINGS)).latest.get(model)
    opened = to.open_run(messages.RunToOpen(run=run, sighting=seen))
    sent: set[str] = set()

    def predictions() -> Iterator[Prediction]:
        for one in source.read(PREDICTIONS, model, run_id):
            sent.add(one.prediction_id)
            yield one

    # A launch that was killed may have left verdicts whose prediction was not carried over.
    judgements = (one for one in source.read(JUDGED, model, run_id) if one.prediction_id in sent)
    return Pushed(
        run_id,
        model,
        opened.state == "new",
        run.planned,
        _send(predictions(), lambda batch: to.take_predictions(run_id, model, batch)),
        _send(judgements, lambda batch: to.take_judgements(run_id, model, batch)),
    )


def _copy_version(source: Journal, to: Server | Receiver, version: BenchmarkVersion) -> None:
    """Send it without items first: they may be there."""
    kept = to.keep_version(version)
    if kept.state == "incomplete":
        items = past_items(source, version.benchmark_version)
        kept = to.keep_version(version, (items[key] for key in items if key.suite in kept.missing))
    if kept.state == "incomplete":
        raise PushError("The server does not keep the items of the benchmark version.")


def _send(records: Iterable[R], take: Callable[[list[R]], messages.Received]) -> Sent:
    received = [take(batch) for batch in batches(records)]
    return Sent(sum(one.received for one in received), sum(one.new for one in received))


def batches(records: Iterable[R]) -> Iterator[list[R]]:
    """Yield as many records at a time as fit into one request."""
    batch: list[R] = []
    size = 0
    for record in records:
        length = len(as_line(record))
        if batch and (len(batch) == messages.MOST_RECORDS or size + length > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(record)
        size += length
    if batch:
        yield batch
