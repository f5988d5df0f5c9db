"""Splits a log into sessions."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass


class LogError(Exception):
    """A line of the log can not be used."""


@dataclass(frozen=True)
class Session:
    """Events without a long pause between them."""

    start: int
    end: int
    texts: list[str]


def read_sessions(lines: Iterable[str], gap: int) -> Iterator[Session]:
    """The sessions of a log, one after the other."""
    if gap <= 0:
        raise ValueError("gap must be above zero")
    return _sessions(_events(lines), gap)


def _events(lines: Iterable[str]) -> list[tuple[int, str]]:
    events: list[tuple[int, str]] = []
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        time, separator, text = line.partition(" ")
        if not separator or not time.isdecimal():
            raise LogError(f"line {number} is not an event")
        if events and int(time) < events[-1][0]:
            raise LogError(f"line {number} goes back in time")
        events.append((int(time), text))
    return events


def _sessions(events: list[tuple[int, str]], gap: int) -> Iterator[Session]:
    current: Session | None = None
    for time, text in events:
        if current is not None and time - current.end <= gap:
            current = Session(current.start, time, [*current.texts, text])
        else:
            if current is not None:
                yield current
            current = Session(time, time, [text])
    if current is not None:
        yield current
