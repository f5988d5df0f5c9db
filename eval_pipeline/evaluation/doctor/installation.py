"""Checks of what is installed: Python and the packages, against what pyproject.toml asks for."""

import platform
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution, version

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from eval_pipeline.evaluation.doctor.report import Check, Finding, ok, wrong

PROJECT = "eval-pipeline"
SET_UP = "make setup"
TOLD = ("dagster", "duckdb", "pydantic")
"""Whose versions are told even if all is well."""
REASONS = {
    "duckdb": " DuckDB 2 silently loses committed rows when processes take turns on one file.",
    "dagster": " Its libraries must match it to the last number.",
}


def installation_checks() -> list[Check]:
    """These need no settings, and none of the packages that they look at."""
    return [Check("Python", python), Check("packages", packages)]


def python() -> Iterator[Finding]:
    """The interpreter's version."""
    found = platform.python_version()
    wanted = distribution(PROJECT).metadata["Requires-Python"] or ""
    if SpecifierSet(wanted).contains(found, prereleases=True):
        yield ok("Python", f"{found}.")
    else:
        yield wrong("Python", f"{found}, but {wanted} is needed.", f"{SET_UP} PYTHON=python3.11")


def packages() -> Iterator[Finding]:
    """Every package that the project names, with the versions that it allows."""
    stated = map(Requirement, distribution(PROJECT).requires or [])
    needed = [one for one in stated if one.marker is None or one.marker.evaluate()]
    unfit = [finding for one in needed for finding in misfit(one)]
    yield from unfit
    if not unfit:
        told = ", ".join(f"{name} {version(name)}" for name in TOLD)
        yield ok("packages", f"All {len(needed)} fit: {told} and others.")


def misfit(needed: Requirement) -> Iterator[Finding]:
    """What is wrong with a package, if anything is."""
    try:
        found = version(needed.name)
    except PackageNotFoundError:
        yield wrong(needed.name, "It is not installed.", SET_UP)
        return
    if not needed.specifier.contains(found, prereleases=True):
        why = REASONS.get(needed.name, "")
        yield wrong(needed.name, f"{found}, but {needed.specifier} is needed.{why}", SET_UP)
