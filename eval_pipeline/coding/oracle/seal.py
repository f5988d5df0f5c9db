"""Whether the tools of testing are still what they were before an answer was imported."""

import builtins
import sys
import types
from collections.abc import Callable, Iterator, Mapping

_PACKAGES = ("_pytest", "pytest", "pluggy", "unittest", "eval_pipeline")
# Replaced by pytest itself, or by the standard library, in the course of things.
_EXEMPT = frozenset({"_reprcompare", "_assertion_pass"})


def _functions(space: Mapping[str, object]) -> Iterator[tuple[str, types.FunctionType]]:
    for name, found in list(space.items()):
        if isinstance(found, types.FunctionType) and name not in _EXEMPT:
            yield name, found


def _parts() -> Iterator[tuple[Mapping[str, object], str, types.FunctionType]]:
    """Every function of the tools: where it is, by which name."""
    for module_name, module in list(sys.modules.items()):
        if module_name.partition(".")[0] not in _PACKAGES or module is None:
            continue
        space = vars(module)
        spaces: list[Mapping[str, object]] = [space]
        spaces += [
            vars(found)
            for found in list(space.values())
            if isinstance(found, type) and found.__module__ == module_name
        ]
        for one in spaces:
            yield from ((one, name, function) for name, function in _functions(dict(one)))


def sealed() -> Callable[[], str | None]:
    """A look at everything now; calling it later says what has been changed, if anything has."""
    functions = [(space, name, one, one.__code__) for space, name, one in _parts()]
    known_builtins = dict(vars(builtins))
    modules = {name: sys.modules[name] for name in sys.modules if name.split(".")[0] in _PACKAGES}
    space_of, modules_now, trace, profile = (
        vars(builtins),
        sys.modules,
        sys.gettrace,
        sys.getprofile,
    )

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
