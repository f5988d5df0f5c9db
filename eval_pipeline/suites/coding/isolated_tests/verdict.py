"""What reports of tests come to: a pass needs every test, every canary and a proper end."""

from collections.abc import Sequence
from dataclasses import dataclass

from eval_pipeline.records.coding import Step, TestResult
from eval_pipeline.suites.coding.isolated_tests.relay import Reports

VERSION = 1
"""Raise this when a change of this package may change a verdict, never for a refactoring."""
FAILED_TESTS = 1
"""How pytest ends where the canaries have failed, as they must."""


@dataclass(frozen=True)
class Ended:
    """How the processes ended: whether properly, and if not, whose fault that is."""

    exit_code: int | None
    # Why the tests can not have come to a proper end; None if nothing was in their way.
    cut_short: str | None
    # Whether code of the answer ran where the tests did.
    beside: bool


def judged(reports: Reports, ended: Ended, expected: Sequence[str] | None) -> Step:
    """The tests step, without what it printed."""
    found, said = _results(reports), _said(reports)
    names = list(expected) if expected is not None else list(found)
    told = {word[0]: word[1] for word in reports.words if word[0] in ("broken", "tampered")}
    fault = _tampering(reports, found, said, names) or _early_end(reports, ended, told)
    if fault and fault.startswith(_MISTRUSTED):
        found = {}
    missing = fault or "It did not run."
    tests = tuple(found.get(name) or _not_run(name, missing) for name in names)
    failed = next((test for test in tests if not test.passed), None)
    reason = fault or (f"{failed.name}: {failed.message}" if failed else "")
    if not tests and not reason:
        reason = "There were no tests."
    status = "failed" if reason else "passed"
    if not ended.beside and _is_ours(reports, ended, told):
        status = "error"
    return Step(name="tests", status=status, reason=reason, tests=tests)


_MISTRUSTED = "What was reported can not be trusted: "


def _results(reports: Reports) -> dict[str, TestResult]:
    """The task's own tests by their name; one that was reported twice counts as failed."""
    found: dict[str, TestResult] = {}
    for word in reports.words:
        if word[0] != "test" or _function(word[1]) in reports.canaries:
            continue
        _, name, passed, when, message = word
        twice = name in found
        where = f"in its {when}: " if when and when != "call" else ""
        text = "It was reported twice." if twice else f"{where}{message}"
        result = TestResult(name=name, passed=passed is True and not twice, message=text)
        found[name] = result
    return found


def _said(reports: Reports) -> dict[str, bool]:
    """Of each canary whether it failed when it was called."""
    return {
        _function(word[1]): word[2] is False and word[3] == "call"
        for word in reports.words
        if word[0] == "test" and _function(word[1]) in reports.canaries
    }


def _function(name: str) -> str:
    return name.rpartition("::")[2]


def _not_run(name: str, why: str) -> TestResult:
    return TestResult(name=name, passed=False, message=f"It did not run. {why}"[:2000])


def _tampering(
    reports: Reports, found: dict[str, TestResult], said: dict[str, bool], names: Sequence[str]
) -> str | None:
    """Signs that somebody has meddled with the tests."""
    if reports.forged:
        return f"{_MISTRUSTED}{reports.forged}."
    changed = next((word[1] for word in reports.words if word[0] == "tampered"), None)
    if changed is not None:
        return f"{_MISTRUSTED}{changed} was replaced."
    if not all(said.values()):
        return f"{_MISTRUSTED}a test passed that can not pass."
    if stray := [name for name in found if name not in names]:
        return f"{_MISTRUSTED}{stray[0]} is no test of this task."
    if _has_ended(reports) and found and set(said) != set(reports.canaries):
        return f"{_MISTRUSTED}not all tests were run."
    return None


def _early_end(reports: Reports, ended: Ended, told: dict[str, str]) -> str | None:
    if "broken" in told:
        return f"The tests could not begin: {told['broken']}"
    if ended.cut_short:
        return ended.cut_short
    if not _has_ended(reports) or ended.exit_code != FAILED_TESTS:
        return f"The tests did not come to their end (exit code {ended.exit_code})."
    return None


def _has_ended(reports: Reports) -> bool:
    return bool(reports.words) and reports.words[-1][:1] == ["end"]


def _is_ours(reports: Reports, ended: Ended, told: dict[str, str]) -> bool:
    """Where no answer could have ended the tests, their not ending is the grader's fault."""
    return not ended.cut_short and "broken" not in told and not _has_ended(reports)
