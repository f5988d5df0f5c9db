"""The plugin that says what came of each test, in words that are signed and in order."""

import builtins
import hashlib
import json
import socket
import sys
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from eval_pipeline.suites.coding.isolated_tests.wire import pack, signature

_PACKAGES = ("_pytest", "pytest", "pluggy", "unittest", "eval_pipeline")
# Replaced by pytest itself, or by the standard library, in the course of things.
_EXEMPT = frozenset({"_reprcompare", "_assertion_pass"})


def _parts() -> Iterator[tuple[Mapping[str, object], str, types.FunctionType]]:
    """Every function of the tools: where it is, by which name."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in _PACKAGES or module is None:
            continue
        classes = (found for found in list(vars(module).values()) if isinstance(found, type))
        own = (found for found in classes if found.__module__ == module_name)
        for space in map(vars, (module, *own)):
            for name, found in list(space.items()):
                if isinstance(found, types.FunctionType) and name not in _EXEMPT:
                    yield space, name, found


def sealed() -> Callable[[], str | None]:
    """A look at everything now; calling it later says what has been changed, if anything has."""
    functions = [(space, name, one, one.__code__) for space, name, one in _parts()]
    known_builtins = dict(vars(builtins))
    modules = {name: sys.modules[name] for name in sys.modules if name.split(".")[0] in _PACKAGES}
    space_of, modules_now = vars(builtins), sys.modules
    trace, profile = sys.gettrace, sys.getprofile

    def broken() -> str | None:
        for name, found in known_builtins.items():
            if space_of.get(name) is not found and name != "_":
                return f"builtins.{name}"
        for name, module in modules.items():
            if modules_now.get(name) is not module:
                return f"the module {name}"
        for space, name, function, code in functions:
            if space.get(name) is not function or function.__code__ is not code:
                return f"the function {name}"
        return "a trace function" if trace() or profile() else None

    return broken


# Tests that must fail: where one passes, something has been done to how tests are run.
# Compiled under the name of the tests' own file, so that nobody can tell them from those.
_SOURCES = (
    "assert 1 == 2",
    "assert len([1]) == 2",
    "assert not isinstance(1, int)",
    "raise AssertionError('must fail')",
    "raise ValueError('must fail')",
    "with pytest.raises(ValueError): pass",
    "assert sorted([2, 1]) == [2, 1]",
    "assert {'a': 1} == {'a': 2}",
    "assert all([True, False])",
    "assert any([False])",
    "assert 0.5 == pytest.approx(0.6)",
    "assert type(1) is str",
    "assert 'x' in {'y'}",
    "assert sum([1, 2]) == 4",
    "assert str(1) == '2'",
)


def canary(number: int, name: str, path: str) -> Callable[[], None]:
    """One of them, which looks like any other test of the file."""
    source = f"def {name}():\n    {_SOURCES[number % len(_SOURCES)]}\n"
    space: dict[str, Any] = {"pytest": pytest}
    exec(compile(source, path, "exec"), space)  # noqa: S102  (the source is above)
    made: Callable[[], None] = space[name]
    return made


Say = Callable[..., None]
_MESSAGE = 2000


def reporter(channel: socket.socket, key: bytes) -> Say:
    """Says words to the host; only this function has the key, and nothing of it is an attribute."""
    keyed = hashlib.blake2b(key=key)
    send, dumps, number = channel.sendall, json.dumps, iter(range(2**31)).__next__
    copy, sign, packed = keyed.copy, signature, pack

    def say(*words: Any) -> None:
        text = dumps([number(), *words])
        send(packed([text, sign(copy(), text)], b"R"))

    return say


class Reporting:
    """Reports every test once, when it is over in all of its parts."""

    def __init__(self, say: Say, canaries: Sequence[str], *, guarded: bool) -> None:
        self._say, self._canaries = say, tuple(canaries)
        self._broken = sealed() if guarded else lambda: None
        self._failed: dict[str, tuple[str, str]] = {}
        self._seen: dict[str, set[str]] = {}
        self._returned: set[str] = set()

    def pytest_collectstart(self, collector: pytest.Collector) -> None:
        """What an answer has put in the place of tests to come is not taken for them."""
        if isinstance(collector, pytest.Module):
            sys.modules.pop(collector.path.stem, None)

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Puts the tests that must fail among the others."""
        own = [item for item in items if isinstance(item, pytest.Function)]
        if not own:
            return
        for number, name in enumerate(self._canaries):
            beside = own[number % len(own)]
            made = pytest.Function.from_parent(
                beside.getparent(pytest.Module),
                name=name,
                callobj=canary(number, name, str(beside.path)),
            )
            items.insert(items.index(beside) + number % 2, made)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pyfunc_call(self, pyfuncitem: pytest.Function) -> bool:
        """Runs the test itself, so that it is known first hand whether it came to its end."""
        names = pyfuncitem._fixtureinfo.argnames
        result = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
        if result is not None:
            pytest.fail("A test must not give anything back; run coroutines with asyncio.run.")
        self._returned.add(pyfuncitem.nodeid)
        return True

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """What has to fail is nothing to tell people about."""
        return ("", "", "") if report.nodeid.rpartition("::")[2] in self._canaries else None

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._say("broken", _message(report))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._seen.setdefault(report.nodeid, set()).add(report.when or "")
        if report.outcome != "passed" or hasattr(report, "wasxfail"):
            self._failed.setdefault(report.nodeid, (report.when or "", _message(report)))

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Says what came of the test, and first if the tools are no longer what they were."""
        if changed := self._broken():
            self._say("tampered", changed)
        when, message = self._failed.get(nodeid, ("", ""))
        whole = self._seen.get(nodeid) == {"setup", "call", "teardown"}
        passed = whole and not when and nodeid in self._returned
        if not passed and not when:
            message = "It was not run as a whole."
        self._say("test", nodeid, passed, when, message)


def _message(report: pytest.CollectReport | pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)[:_MESSAGE]
    if isinstance(report.longrepr, tuple):
        return str(report.longrepr[-1])[:_MESSAGE]
    return report.longreprtext[-_MESSAGE:] or report.outcome
