"""What reports of tests come to: a pass needs every test, every canary and a proper end."""

from collections.abc import Mapping, Sequence
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
    found, canaries = _results(reports)
    names = list(found if expected is None else expected)
    told = {word[0]: word[1] for word in reports.words if word[0] in ("broken", "tampered")}
    has_ended = bool(reports.words) and reports.words[-1][0] == "end"
    fault = _early_end(ended, told, has_ended=has_ended)
    if distrust := _tampering(reports, found, canaries, names, has_ended=has_ended):
        found, fault = {}, f"The reported results cannot be trusted: {distrust}."
    missing = f"It did not run. {fault or 'It did not run.'}"[:2000]
    tests = tuple(
        found.get(name) or TestResult(name=name, passed=False, message=missing) for name in names
    )
    failed = next((test for test in tests if not test.passed), None)
    reason = fault or (f"{failed.name}: {failed.message}" if failed else "")
    if not tests and not reason:
        reason = "There were no tests."
    status = "failed" if reason else "passed"
    # If no answer could have stopped the tests early, it is the grader's fault that they stopped.
    if not (ended.beside or ended.cut_short or "broken" in told or has_ended):
        status = "error"
    return Step(name="tests", status=status, reason=reason, tests=tests)


def _results(reports: Reports) -> tuple[dict[str, TestResult], dict[str, bool]]:
    """Return the task's own tests by name, and of each canary whether it failed when called."""
    found: dict[str, TestResult] = {}
    canaries: dict[str, bool] = {}
    for _, name, passed, when, message in (word for word in reports.words if word[0] == "test"):
        function = name.rpartition("::")[2]
        if function in reports.canaries:
            canaries[function] = passed is False and when == "call"
            continue
        twice = name in found
        where = f"in its {when}: " if when and when != "call" else ""
        text = "It was reported twice." if twice else f"{where}{message}"
        found[name] = TestResult(name=name, passed=passed is True and not twice, message=text)
    return found, canaries


def _tampering(
    reports: Reports,
    found: Mapping[str, TestResult],
    canaries: Mapping[str, bool],
    names: Sequence[str],
    *,
    has_ended: bool,
) -> str | None:
    """Signs that somebody has meddled with the tests."""
    if reports.forged:
        return reports.forged
    if changed := [word[1] for word in reports.words if word[0] == "tampered"]:
        return f"{changed[0]} was replaced"
    if not all(canaries.values()):
        return "a test passed that must fail"
    if stray := [name for name in found if name not in names]:
        return f"{stray[0]} is no test of this task"
    if has_ended and found and set(canaries) != set(reports.canaries):
        return "not all tests were run"
    return None


def _early_end(ended: Ended, told: Mapping[str, str], *, has_ended: bool) -> str | None:
    if "broken" in told:
        return f"The tests could not begin: {told['broken']}"
    if ended.cut_short:
        return ended.cut_short
    if not has_ended or ended.exit_code != FAILED_TESTS:
        return f"The tests did not come to their end (exit code {ended.exit_code})."
    return None
