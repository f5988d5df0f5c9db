"""Findings of a checkup, and the checks of Python and the installed packages."""

import platform
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, distribution, version
from typing import NamedTuple

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from eval_pipeline.errors import MendableError

AGAIN = "Mend that, then: evals doctor"
PROJECT = "eval-pipeline"
SET_UP = "make setup"
TOLD = ("dagster", "duckdb", "pydantic")
"""The packages whose versions are shown even if all versions fit."""
REASONS = {
    "duckdb": " DuckDB 2 silently loses committed rows when processes take turns on one file.",
    "dagster": " Its libraries must match it to the last number.",
}
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


def installation_checks() -> list[Check]:
    """List the checks that need neither settings nor the packages that they look at."""
    return [Check("Python", python), Check("packages", packages)]


def python() -> Iterator[Finding]:
    """Check the interpreter's version."""
    found = platform.python_version()
    wanted = distribution(PROJECT).metadata["Requires-Python"] or ""
    if SpecifierSet(wanted).contains(found, prereleases=True):
        yield ok("Python", f"{found}.")
    else:
        yield wrong("Python", f"{found}, but {wanted} is needed.", f"{SET_UP} PYTHON=python3.11")


def packages() -> Iterator[Finding]:
    """Check every package that the project names against the versions that it allows."""
    stated = map(Requirement, distribution(PROJECT).requires or [])
    needed = [one for one in stated if one.marker is None or one.marker.evaluate()]
    unfit = [finding for one in needed for finding in misfit(one)]
    yield from unfit
    if not unfit:
        versions = ", ".join(f"{name} {version(name)}" for name in TOLD)
        yield ok("packages", f"All {len(needed)} fit: {versions} and others.")


def misfit(needed: Requirement) -> Iterator[Finding]:
    """Yield a finding if a package is missing or its version does not fit."""
    try:
        found = version(needed.name)
    except PackageNotFoundError:
        yield wrong(needed.name, "It is not installed.", SET_UP)
        return
    if not needed.specifier.contains(found, prereleases=True):
        why = REASONS.get(needed.name, "")
        yield wrong(needed.name, f"{found}, but {needed.specifier} is needed.{why}", SET_UP)
