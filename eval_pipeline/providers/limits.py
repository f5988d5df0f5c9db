"""When to ask again and how long to wait: decisions, no waiting."""

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True)
class RetryPolicy:
    """Exponential backoff with full jitter, bounded in attempts and in waiting."""

    attempts: int
    first_wait_s: float
    longest_wait_s: float

    def wait_after(
        self, attempt: int, *, transient: bool, retry_after: float | None, jitter: float
    ) -> float | None:
        """Seconds to wait after the failed `attempt` (1, 2, …), or None to give up."""
        if attempt >= self.attempts or not transient:
            return None
        backoff = jitter * min(self.longest_wait_s, self.first_wait_s * 2.0 ** min(attempt - 1, 60))
        if retry_after is None:
            return backoff
        # The server's word counts, a little spread out so that not all come back at once.
        return min(self.longest_wait_s, retry_after) + backoff * 0.1


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Seconds from a Retry-After header, which holds a number or a date."""
    if not text:
        return None
    try:
        return max(0.0, float(text))
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError):
        return None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())
