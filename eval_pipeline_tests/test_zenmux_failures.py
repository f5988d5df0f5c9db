"""What zenmux-benchmark noted of failed requests has a name here, and is never a 0."""

import pytest

from eval_pipeline.interop.zenmux.convert import failure
from eval_pipeline.records.outcome import Outcome


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (None, Outcome.EMPTY),
        ("Request timed out.", Outcome.TIMEOUT),
        ("Connection error.", Outcome.CONNECTION_ERROR),
        (
            "peer closed connection without sending all (incomplete chunked read)",
            Outcome.CUT_STREAM,
        ),
        ("Error code: 429 - {'error': {'message': 'slow'}}", Outcome.RATE_LIMITED),
        ("Error code: 401 - {'error': {'message': 'no key'}}", Outcome.AUTH),
        ("Error code: 402 - {'error': 'pay'}", Outcome.NO_CREDIT),
        ("Error code: 404 - {'error': 'gone'}", Outcome.UNKNOWN_MODEL),
        ("Error code: 400 - maximum context length is 8192 tokens", Outcome.CONTEXT_TOO_LONG),
        ("Error code: 403 - flagged by moderation", Outcome.BAD_REQUEST),
        ("Error code: 504 - <html>Gateway Time-out</html>", Outcome.SERVER_ERROR),
        ("[Errno 24] Too many open files", Outcome.INTERNAL_ERROR),
        ("Expecting value: line 1 column 1, JSON", Outcome.INVALID_REPLY),
        ("upstream said nothing we know", Outcome.SERVER_ERROR),
        ("x" * 10_000_000, Outcome.SERVER_ERROR),
    ],
)
def test_every_failure_has_a_name_that_is_no_result(error: str | None, outcome: Outcome) -> None:
    assert failure(error) is outcome
    assert not outcome.is_result
