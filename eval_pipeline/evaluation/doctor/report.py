"""What a checkup finds: how each thing stands, and what to do about it."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import NamedTuple

from eval_pipeline.errors import MendableError

AGAIN = "Mend that, then: evals doctor"
OURS = "This is a fault of ours, or of what it looks at. The other checks hold all the same."


class State(StrEnum):
    """How a thing stands; only what is wrong keeps an evaluation from working."""

    OK = "ok"
    WARNING = "warning"
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at: what was found and, unless it is ok, what to do."""

    name: str
    state: State
    found: str
    advice: str = ""


class Check(NamedTuple):
    """Looks at something; its name stands for what it would have found if it breaks."""

    name: str
    look: Callable[[], Iterable[Finding]]


class Topic(NamedTuple):
    """What was found about things that belong together."""

    name: str
    findings: Sequence[Finding]


def ok(name: str, found: str) -> Finding:
    """Nothing to do."""
    return Finding(name, State.OK, found)


def warning(name: str, found: str, advice: str) -> Finding:
    """It works, but somebody should know."""
    return Finding(name, State.WARNING, found, advice)


def wrong(name: str, found: str, advice: str = AGAIN) -> Finding:
    """So an evaluation can not work, or not be trusted."""
    return Finding(name, State.WRONG, found, advice)


def look_at(name: str, checks: Iterable[Check], redact: Callable[[str], str] = str) -> Topic:
    """Does all of the checks, also if some break; no text of any has a key in it."""
    findings = [finding for check in checks for finding in _found(check)]
    return Topic(
        name,
        [
            replace(one, name=redact(one.name), found=redact(one.found), advice=redact(one.advice))
            for one in findings
        ],
    )


def _found(check: Check) -> Iterator[Finding]:
    try:
        yield from check.look()
    except MendableError as error:
        yield wrong(check.name, str(error))
    except Exception as error:  # noqa: BLE001  (whatever breaks one check must not end the others)
        yield wrong(check.name, f"{type(error).__name__}: {error}", OURS)
