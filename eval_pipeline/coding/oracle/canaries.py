"""Tests that must fail: where one of them passes, something has been done to how tests are run."""

import importlib
from collections.abc import Callable
from typing import Any

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
COUNT = len(_SOURCES)


def canary(number: int, name: str, path: str) -> Callable[[], None]:
    """One of them, which looks like any other test of the file."""
    source = f"def {name}():\n    {_SOURCES[number % COUNT]}\n"
    # Only where tests run there is a pytest; the host wants no more than the count.
    space: dict[str, Any] = {"pytest": importlib.import_module("pytest")}
    exec(compile(source, path, "exec"), space)  # noqa: S102  (the source is above)
    made: Callable[[], None] = space[name]
    return made
