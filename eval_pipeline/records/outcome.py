"""How asking ended, by name; and which of these endings say something about the model."""

from enum import StrEnum


class Outcome(StrEnum):
    """How asking ended: an answer, the model's own failing, or a failure on the way."""

    OK = "ok"
    REFUSED = "refused"
    TRUNCATED = "truncated"
    TRUNCATED_THINKING = "truncated_thinking"
    CONTENT_FILTER = "content_filter"
    EMPTY = "empty"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    SERVER_ERROR = "server_error"
    CONNECTION_ERROR = "connection_error"
    CUT_STREAM = "cut_stream"
    INVALID_REPLY = "invalid_reply"
    BAD_REQUEST = "bad_request"
    CONTEXT_TOO_LONG = "context_too_long"
    AUTH = "auth"
    FORBIDDEN = "forbidden"
    NO_CREDIT = "no_credit"
    UNKNOWN_MODEL = "unknown_model"
    JUDGE_UNPARSABLE = "judge_unparsable"
    UNDECIDED = "undecided"
    SANDBOX_ERROR = "sandbox_error"
    INTERNAL_ERROR = "internal_error"

    @property
    def is_result(self) -> bool:
        """Whether it says something about the model; everything else is to be asked again."""
        return self in _RESULTS

    def is_hopeless(self, *, answered_before: bool) -> bool:
        """Whether no other request to this model can do better."""
        return self in _HOPELESS or (self in _DOUBTFUL and not answered_before)


_RESULTS = {
    Outcome.OK,
    Outcome.REFUSED,
    Outcome.TRUNCATED,
    Outcome.TRUNCATED_THINKING,
    Outcome.CONTENT_FILTER,
    # That the rules can not tell is their last word on an answer: nothing is to be asked again.
    Outcome.UNDECIDED,
}
_HOPELESS = {Outcome.AUTH, Outcome.NO_CREDIT}
# A gateway may say these of one request, such as one with an image, too.
_DOUBTFUL = {Outcome.FORBIDDEN, Outcome.UNKNOWN_MODEL}
