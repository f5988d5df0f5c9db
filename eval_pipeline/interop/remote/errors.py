"""Why something from elsewhere is not taken: a sentence, and the status of HTTP for it."""

from eval_pipeline.errors import MendableError


class RefusedError(MendableError):
    """Nothing was written; the sentence names neither files nor secrets."""

    status = 422


class NoTokenError(RefusedError):
    """Nobody knows who this is."""

    status = 401


class NotAllowedError(RefusedError):
    """The token is not for this."""

    status = 403


class UnknownError(RefusedError):
    """There is no such thing here."""

    status = 404


class ConflictError(RefusedError):
    """Something else is here under the same name."""

    status = 409


class AtWorkError(ConflictError):
    """Somebody else is at work on it: later it may go."""

    retry_after_s = 5


class TooLargeError(RefusedError):
    """More than is taken at once."""

    status = 413


class WrongTypeError(RefusedError):
    """It is not in a form that is read here."""

    status = 415
