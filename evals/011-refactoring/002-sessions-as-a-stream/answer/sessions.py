"""Splits a log into sessions while it is being read."""

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
    """The sessions of a log, each as soon as the next one begins."""
    # A generator would not run up to this check before its first session is asked for.
    if gap <= 0:
        raise ValueError("gap must be above zero")
    return _sessions(_events(lines), gap)


def _events(lines: Iterable[str]) -> Iterator[tuple[int, str]]:
    last = 0
    for number, raw in enumerate(lines, start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        time, separator, text = line.partition(" ")
        if not separator or not time.isdecimal():
            raise LogError(f"line {number} is not an event")
        if int(time) < last:
            raise LogError(f"line {number} goes back in time")
        last = int(time)
        yield last, text


def _sessions(events: Iterator[tuple[int, str]], gap: int) -> Iterator[Session]:
    start = end = 0
    texts: list[str] = []
    for time, text in events:
        if texts and time - end > gap:
            yield Session(start, end, texts)
            texts = []
        if not texts:
            start = time
        texts.append(text)
        end = time
    if texts:
        yield Session(start, end, texts)
