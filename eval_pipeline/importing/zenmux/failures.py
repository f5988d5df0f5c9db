"""What zenmux-benchmark noted of a request that failed, as one of our outcomes."""

import re

from eval_pipeline.gateways.dialects.errors import provider_error
from eval_pipeline.outcomes import Outcome

_STATUS = re.compile(r"\b(?:error code|status code|HTTP)[:= ]{1,3}([45]\d\d)\b", re.IGNORECASE)
_BY_WORDS = (
    (Outcome.CUT_STREAM, re.compile(r"peer closed connection|incomplete chunked read", re.I)),
    (Outcome.TIMEOUT, re.compile(r"time[d -]*out", re.I)),
    (Outcome.RATE_LIMITED, re.compile(r"rate.?limit|too many requests", re.I)),
    (Outcome.CONNECTION_ERROR, re.compile(r"connect|network|dns|socket|ssl", re.I)),
    (Outcome.INTERNAL_ERROR, re.compile(r"too many open files", re.I)),
    (Outcome.INVALID_REPLY, re.compile(r"json|parse|decode|validation error", re.I)),
)
_SEARCHED = 4_000
"""Characters of an error: far more than say what it is."""


def failure(error: str | None) -> Outcome:
    """The name of a failure; none of them says anything about the model, so none is ever a 0."""
    if error is None:
        return Outcome.EMPTY
    text = error[:_SEARCHED]
    if found := _STATUS.search(text):
        status, body = int(found[1]), text.encode("utf-8", "replace")
        named = provider_error(status, body, retry_after=None, quote=str).outcome
        # There it was a failure: it is to be asked again, and then named by what is said here.
        return Outcome.BAD_REQUEST if named.is_result else named
    return next((name for name, words in _BY_WORDS if words.search(text)), Outcome.SERVER_ERROR)
