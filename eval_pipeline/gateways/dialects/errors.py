"""The errors of servers as ProviderErrors: an outcome, and words that are safe to keep."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from eval_pipeline.gateways.chat import ProviderError
from eval_pipeline.records.outcome import Outcome

Quote = Callable[[str], str]
"""Makes a server's words fit to be kept: one short line without any key."""

_BY_STATUS = {
    401: Outcome.AUTH,
    402: Outcome.NO_CREDIT,
    403: Outcome.FORBIDDEN,
    404: Outcome.UNKNOWN_MODEL,
    408: Outcome.TIMEOUT,
    429: Outcome.RATE_LIMITED,
}
_TRANSIENT = {Outcome.TIMEOUT, Outcome.RATE_LIMITED, Outcome.SERVER_ERROR}
# A code or type is more precise than the status.
_BY_CODE = {
    "authentication_error": Outcome.AUTH,
    "invalid_api_key": Outcome.AUTH,
    "billing_error": Outcome.NO_CREDIT,
    "billing_hard_limit_reached": Outcome.NO_CREDIT,
    "exceeded_current_quota_error": Outcome.NO_CREDIT,
    "insufficient_credits": Outcome.NO_CREDIT,
    "insufficient_quota": Outcome.NO_CREDIT,
    "model_not_found": Outcome.UNKNOWN_MODEL,
    "context_length_exceeded": Outcome.CONTEXT_TOO_LONG,
    "exceed_context_size_error": Outcome.CONTEXT_TOO_LONG,
    "string_above_max_length": Outcome.CONTEXT_TOO_LONG,
    "content_filter": Outcome.CONTENT_FILTER,
    "content_policy_violation": Outcome.CONTENT_FILTER,
    "data_inspection_failed": Outcome.CONTENT_FILTER,
    "moderation": Outcome.CONTENT_FILTER,
    "moderation_blocked": Outcome.CONTENT_FILTER,
    "rate_limit_error": Outcome.RATE_LIMITED,
    "rate_limit_exceeded": Outcome.RATE_LIMITED,
    "overloaded_error": Outcome.SERVER_ERROR,
    "timeout_error": Outcome.TIMEOUT,
}
# Inside of a reply there is no status, but these words stand for one.
_STATUS_BY_CODE = {
    "invalid_image": 400,
    "invalid_prompt": 400,
    "invalid_request_error": 400,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
}


# Words of messages without such a code, and the statuses that they are known to come with.
_BY_WORDS: Mapping[Outcome, tuple[set[int], str]] = {
    Outcome.CONTEXT_TOO_LONG: (
        {400, 413, 422, 500},
        r"(maximum|available|model'?s) context (length|size|window)|context[ _]?window|"
        r"context (length|limit)|(prompt|input) is too long|exceeds the maximum number of tokens",
    ),
    Outcome.NO_CREDIT: (
        {400, 403},
        r"credit balance is too low|insufficient (balance|credits?|funds)",
    ),
    Outcome.AUTH: ({400}, r"api[ _]key (is )?(not valid|invalid)|(invalid|incorrect) api[ _]key"),
    Outcome.UNKNOWN_MODEL: (
        {400},
        r"is not a valid model id|the model .{1,200} does not exist|invalid model name",
    ),
    Outcome.CONTENT_FILTER: (
        {403},
        r"moderation|\bflagged\b|content (policy|filter)|safety system",
    ),
}
# Far more than any wording needs; a hostile body is not searched for seconds.
_SEARCHED = 20_000


class _Said(NamedTuple):
    """The parts of an error that are read."""

    message: str
    codes: tuple[str, ...] = ()
    status: int | None = None
    moderated: bool = False


def provider_error(
    status: int, body: bytes, *, retry_after: float | None, quote: Quote
) -> ProviderError:
    """Return the error behind an HTTP status; its body may name it better than the status."""
    said = _said_in_body(body)
    outcome = _outcome(status, said)
    return ProviderError(
        outcome,
        f"HTTP {status}: {quote(said.message)}",
        transient=outcome in _TRANSIENT,
        retry_after=retry_after,
    )


def reply_error(error: object, quote: Quote) -> ProviderError:
    """Return the error that a server put into a reply which began well."""
    said = _said(error)
    meant = (_STATUS_BY_CODE[code] for code in said.codes if code in _STATUS_BY_CODE)
    outcome = _outcome(said.status or next(meant, 500), said)
    return ProviderError(
        outcome, f"Error in the reply: {quote(said.message)}", transient=outcome in _TRANSIENT
    )


def broken_off(reason: str) -> ProviderError:
    """Return the error of a server that ended the reply early and gave a reason."""
    return ProviderError(
        Outcome.SERVER_ERROR, f"The server ended the reply early: {reason}.", transient=True
    )


def no_reply(missing: str) -> ProviderError:
    """Return the error of JSON that is not what a reply looks like."""
    return ProviderError(Outcome.INVALID_REPLY, f"The reply has no {missing}.", transient=True)


def _outcome(status: int, said: _Said) -> Outcome:
    if named := next((_BY_CODE[code] for code in said.codes if code in _BY_CODE), None):
        return named
    if said.moderated and status == 403:  # noqa: PLR2004
        return Outcome.CONTENT_FILTER
    searched = said.message[:_SEARCHED]
    for outcome, (statuses, words) in _BY_WORDS.items():
        if status in statuses and re.search(words, searched, re.IGNORECASE):
            return outcome
    general = Outcome.SERVER_ERROR if status >= 500 else Outcome.BAD_REQUEST  # noqa: PLR2004
    return _BY_STATUS.get(status, general)


def _said_in_body(body: bytes) -> _Said:
    parsed = _parsed(body)
    if isinstance(parsed, list) and len(parsed) == 1:
        parsed = parsed[0]
    if isinstance(parsed, dict):
        return _said(parsed.get("error") or parsed)
    return _Said(_readable(parsed) if parsed is not None else body.decode("utf-8", "replace"))


def _said(error: object) -> _Said:
    if not isinstance(error, dict):
        return _Said(error if isinstance(error, str) else _readable(error))
    metadata = error.get("metadata")
    about = metadata if isinstance(metadata, dict) else {}
    codes = tuple(code for code in (error.get("code"), error.get("type")) if isinstance(code, str))
    moderated = bool(about.get("reasons"))
    return _Said(_message(error, about), codes, _status(error), moderated)


def _message(error: dict[str, Any], about: dict[str, Any]) -> str:
    """Return the server's words, and those of the server behind it if they are handed on."""
    message, raw = error.get("message"), about.get("raw")
    words = message if isinstance(message, str) and message else _readable(error)
    if not isinstance(raw, str) or not raw:
        return words
    parsed = _parsed(raw.encode("utf-8", "surrogatepass"))
    return f"{words}: {raw if parsed is None else _readable(parsed)}"


def _status(error: dict[str, Any]) -> int | None:
    code = error.get("code")
    stated = int(code) if isinstance(code, str) and re.fullmatch("[45][0-9]{2}", code) else code
    if not isinstance(stated, int) or isinstance(stated, bool):
        return None
    return stated if 400 <= stated < 600 else None  # noqa: PLR2004


def readable(body: bytes) -> str:
    """Return a server's words without the escapes of JSON, behind which a key would hide."""
    parsed = _parsed(body)
    return body.decode("utf-8", "replace") if parsed is None else _readable(parsed)


def _readable(value: object) -> str:
    # Without the escapes of JSON, behind which a key would not be recognized.
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "an error of very many layers"


def _parsed(data: bytes) -> object:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None
