"""What tests can do with an answer that runs in another sandbox than they do."""

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline.records.coding import Step, TaskConfig
from eval_pipeline.suites.coding.isolated_tests import server
from eval_pipeline.suites.coding.isolated_tests.wire import Frames, pack
from eval_pipeline_tests.coding_stand import a_task, take, with_interface


def graded(answer: str, grader: str, *names: str, **limits: object) -> Step:
    """The tests step of an answer over its interface."""
    return take("tests", a_task(grader, answer, config=with_interface(*names, **limits)))


VALUES = [
    "None", "True", "0", "-1", "10**400", "1.5", "-0.0", "float('inf')", "'a\\n\\ud800\\x00ü'",
    "b'\\x00\\xff'", "bytearray(b'x')", "[1, [2]]", "(1, (2,))", "{'b': 1, 'a': {2: 'x'}}",
    "{(1, 2): 3}", "{1, 2}", "frozenset({3})", "1 + 2j", "range(2, 9, 3)", "slice(1, None, 2)",
    "datetime(2024, 2, 29, 12, 30, 1, 5)", "datetime(2024, 1, 1, tzinfo=timezone.utc)",
    "datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=5, minutes=30)))",
    "datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo('Europe/Berlin'))",
    "date(2024, 1, 1)", "time(1, 2, 3)", "timedelta(days=-1, microseconds=7)",
    "Decimal('1.10')", "Fraction(1, 3)", "UUID(int=5)", "PurePosixPath('a/b')", "Path('/x')",
    "deque([1, 2], maxlen=3)", "int", "ValueError", "...",
]  # fmt: skip
IMPORTS = """
from collections import deque
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path, PurePosixPath
from uuid import UUID
from zoneinfo import ZoneInfo
"""


def test_plain_values_come_back_as_they_went() -> None:
    answer = "def same(value):\n    return value\n\ndef shown(value):\n    return repr(value)\n"
    grader = f"""{IMPORTS}
import pytest
from answer import same, shown
@pytest.mark.parametrize("value", [{", ".join(VALUES)}], ids=range({len(VALUES)}))
def test_value(value):
    got = same(value)
    assert type(got) is type(value) and repr(got) == repr(value) and got == value
    assert shown(value) == repr(value)
def test_nan():
    assert same(float("nan")) != same(float("nan"))
def test_order():
    assert list(same({{"z": 1, "a": 2}})) == ["z", "a"]
"""

    step = graded(answer, grader, "same", "shown")

    assert step.status == "passed", step.output
    assert len(step.tests) == len(VALUES) + 2


LIBRARY = """
import asyncio
import collections
import contextlib
import enum
from dataclasses import dataclass
from typing import NamedTuple

LIMIT = 7

class Shelf:
    kind = "shelf"
    def __init__(self, *names):
        self._names = list(names)
    @classmethod
    def of(cls, text): return cls(*text.split())
    @staticmethod
    def twice(n): return 2 * n
    @property
    def first(self): return self._names[0]
    def add(self, name):
        if not name:
            raise ShelfError("no name", code=4)
        self._names.append(name)
        return self
    async def slowly(self, name):
        await asyncio.sleep(0.001)
        return self.add(name)
    def __len__(self): return len(self._names)
    def __iter__(self): return iter(self._names)
    def __getitem__(self, at): return self._names[at]
    def __setitem__(self, at, name): self._names[at] = name
    def __contains__(self, name): return name in self._names
    def __eq__(self, other):
        return self._names == other._names if isinstance(other, Shelf) else NotImplemented
    def __lt__(self, other): return len(self) < len(other)
    def __hash__(self): return len(self._names)
    def __add__(self, other): return Shelf(*self._names, *other)
    def __str__(self): return ",".join(self._names)
    def __repr__(self): return f"Shelf({self})"
    def __enter__(self): return self
    def __exit__(self, kind, error, trace):
        self.left = kind.__name__ if kind else "well"
        return kind is KeyError
    async def __aenter__(self): return self
    async def __aexit__(self, *error): self.left = "async"

class LowShelf(Shelf): pass
class ShelfError(ValueError):
    def __init__(self, text, code):
        super().__init__(text)
        self.code = code
class InnerError(ShelfError): pass
class Color(enum.Enum):
    RED = "r"
    BLUE = "b"
class Point(NamedTuple):
    x: int
    y: int = 5
@dataclass
class Hidden:
    name: str

def hidden(): return Hidden("h")
def low(): return LowShelf("a")
def shelf_of(color, point): return Shelf(color.name, str(point.x))
def points(): return [Point(1), Point(2, 3)]
def colors(): return {Color.RED: Color.BLUE}
def counted(): return collections.Counter("aab")
def inner(): raise InnerError("deep", 3)
def outer():
    try:
        {}["k"]
    except KeyError as error:
        raise RuntimeError("outer") from error
def up_to(n):
    for i in range(n):
        yield i
async def later(n):
    for i in range(n):
        await asyncio.sleep(0)
        yield i
def adder(n): return lambda m: n + m
@contextlib.contextmanager
def opened():
    yield "open"
running = []
async def sleeper(seconds):
    running.append("begun")
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        running.append("cancelled")
        raise
    return seconds
def told(): return list(running)
def prepend(items, table):
    items.insert(0, "x")
    table["n"]["m"] = 1
def quits(): raise SystemExit(3)
def printed():
    print("a word of the answer")
"""
USES = {
    "objects": """
s = Shelf("a", "b")
assert isinstance(s, Shelf) and type(s) is Shelf and not isinstance(s, LowShelf)
assert s.add("c") is s and len(s) == 3 and list(s) == ["a", "b", "c"] and "b" in s and "z" not in s
assert s.first == "a" and s[1] == "b" and s[1:] == ["b", "c"] and Shelf.kind == "shelf"
s[0] = "q"
assert str(s) == "q,b,c" and repr(s) == "Shelf(q,b,c)" and f"{s}" == "q,b,c"
s.extra = [1]
assert s.extra == [1]
with pytest.raises(AttributeError): s.nothing
with pytest.raises(IndexError): s[10]
""",
    "class_methods": """
assert list(Shelf.of("a b")) == ["a", "b"] and Shelf.twice(4) == 8 and Shelf("a").twice(3) == 6
""",
    "comparison": """
assert Shelf("a") == Shelf("a") and Shelf("a") != Shelf("b") and Shelf() < Shelf("a")
assert Shelf("a") != "a" and not Shelf("a") == ["a"]
assert {Shelf("a"): 1}[Shelf("a")] == 1 and len({Shelf("a"), Shelf("a")}) == 1
assert list(Shelf("a") + ["b"]) == ["a", "b"]
with pytest.raises(TypeError): Shelf("a") < 3
""",
    "parents": "assert isinstance(low(), Shelf) and isinstance(low(), LowShelf)",
    "errors": """
with pytest.raises(ShelfError, match="no name") as caught: Shelf().add("")
assert caught.value.code == 4 and isinstance(caught.value, ValueError)
assert str(caught.value) == "no name" and caught.value.args == ("no name",)
with pytest.raises(ShelfError, match="deep") as caught: inner()
assert type(caught.value).__name__ == "InnerError"
with pytest.raises(RuntimeError) as caught: outer()
assert isinstance(caught.value.__cause__, KeyError)
with pytest.raises(SystemExit) as caught: quits()
assert caught.value.code == 3
""",
    "with": """
with Shelf("a") as s: pass
assert s.left == "well"
with Shelf("a") as s: raise KeyError("x")
assert s.left == "KeyError"
with pytest.raises(ShelfError):
    with Shelf() as s: s.add("")
assert s.left == "ShelfError"
with opened() as word: assert word == "open"
""",
    "enums_and_tuples": """
assert points() == [(1, 5), (2, 3)] and points()[1].y == 3 and isinstance(points()[0], Point)
assert Point(4) == (4, 5) and colors() == {Color.RED: Color.BLUE} and Color("r") is Color.RED
assert list(shelf_of(Color.BLUE, Point(1))) == ["BLUE", "1"]
assert [c.value for c in Color] == ["r", "b"]
""",
    "others": """
assert hidden().name == "h" and counted() == {"a": 2, "b": 1} and LIMIT == 7
assert adder(3)(4) == 7 and hidden() != "h"
""",
    "generators": """
g = up_to(3)
assert next(g) == 0 and list(g) == [1, 2]
with pytest.raises(StopIteration): next(g)
async def main(): return [i async for i in later(3)]
assert asyncio.run(main()) == [0, 1, 2]
""",
    "async": """
async def main():
    s = Shelf()
    await asyncio.gather(*(s.slowly(n) for n in "abc"))
    async with s as same: assert same is s
    return s
s = asyncio.run(main())
assert sorted(s) == ["a", "b", "c"] and s.left == "async"
""",
    "cancelling": """
async def main():
    with pytest.raises(asyncio.TimeoutError): await asyncio.wait_for(sleeper(30), 0.01)
    assert told() == ["begun", "cancelled"]
    task = asyncio.create_task(sleeper(30))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError): await task
asyncio.run(main())
assert told() == ["begun", "cancelled"] * 2
""",
    "changed_arguments": """
items, table = ["a"], {"n": {}}
inner_table = table["n"]
prepend(items, table)
assert items == ["x", "a"] and inner_table == {"m": 1} and table["n"] is inner_table
""",
    "copies": """
import copy
s = Shelf("a")
t = copy.deepcopy(s)
t.add("b")
assert len(s) == 1 and len(t) == 2
""",
    "what_can_not_cross": """
for thing in (lambda: 1, iter([1]), object(), open):
    with pytest.raises(TypeError, match="tamper_evident"): Shelf(thing)
""",
}
_PUBLIC = re.findall(r"^(?:async def|def|class) (\w+)", LIBRARY, re.MULTILINE)
# Two classes are not of the interface: objects of theirs come all the same.
NAMES = ("LIMIT", *(name for name in _PUBLIC if name not in ("Hidden", "InnerError")))


def test_an_interface_can_be_used_as_if_it_were_here() -> None:
    uses = "\n".join(
        f"def test_{name}():\n" + "\n".join(f"    {line}" for line in body.strip().splitlines())
        for name, body in USES.items()
    )
    grader = f"import asyncio\nimport pytest\nfrom answer import {', '.join(NAMES)}\n{uses}\n"

    step = graded(LIBRARY, grader, *NAMES)

    assert [test for test in step.tests if not test.passed] == []
    assert (step.status, len(step.tests)) == ("passed", len(USES)), step.reason


def test_the_same_tests_pass_beside_the_answer() -> None:
    uses = {name: body for name, body in USES.items() if name != "what_can_not_cross"}
    body = "\n".join(
        f"def test_{name}():\n" + "\n".join(f"    {line}" for line in text.strip().splitlines())
        for name, text in uses.items()
    )
    grader = f"import asyncio\nimport pytest\nfrom answer import {', '.join(NAMES)}\n{body}\n"

    step = take("tests", a_task(grader, LIBRARY, config=TaskConfig()))

    assert [test for test in step.tests if not test.passed] == []
    assert step.status == "passed"


def test_numbers_of_numpy_are_numbers() -> None:
    answer = "import numpy as np\ndef f(n):\n    return np.array([n, n > 1])[0]\n"
    grader = ONE + "def test_type():\n    assert type(f(3)) is int and f(True) == 1\n"

    step = graded(answer, grader, "f")

    assert step.status == "passed", step.output


ONE = """
from answer import f
def test_first():
    assert f(1) == 1
def test_second():
    assert f(2) == 2
"""
DYING = {
    "dies": ("import os\ndef f(n):\n    if n == 2: os._exit(0)\n    return n\n", "exit code 0"),
    "is_killed": (
        "import os, signal\ndef f(n):\n    if n == 2: os.kill(os.getpid(), 9)\n    return n\n",
        "The answer's process",
    ),
    "hangs": (
        "import time\ndef f(n):\n    if n == 2: time.sleep(60)\n    return n\n",
        "took longer than 2 s",
    ),
    "wants_all_memory": (
        "def f(n):\n    if n == 2: return len(bytearray(4 * 1024**3))\n    return n\n",
        "",
    ),
    "talks_too_long": ("def f(n):\n    return n if n == 1 else 'x' * (20 * 1024**2)\n", ""),
    "nests_too_deeply": (
        "def f(n):\n    found = []\n    for _ in range(5000 * (n - 1)): found = [found]\n"
        "    return found or n\n",
        "",
    ),
}


@pytest.mark.parametrize("way", DYING)
def test_an_answer_that_fails_its_process_fails_what_runs_and_keeps_what_passed(way: str) -> None:
    answer, reason = DYING[way]
    expected = ["test_answer.py::test_first", "test_answer.py::test_second"]
    task = a_task(ONE, answer, config=with_interface("f", tests={"seconds": 2, "memory_mb": 512}))

    step = take("tests", task, expected=expected)

    assert step.status == "failed"
    assert reason in step.reason
    assert [test.passed for test in step.tests] == [True, False]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ("def f(:\n", "SyntaxError"),
        ("import nothing_of_that_name\n", "nothing_of_that_name"),
        ("def g(): ...\n", "'f'"),
        ("raise SystemExit\n", "SystemExit"),
    ],
)
def test_a_module_that_can_not_be_imported_fails_every_test_and_says_why(
    answer: str, said: str
) -> None:
    expected = ["test_answer.py::test_first", "test_answer.py::test_second"]

    step = take("tests", a_task(ONE, answer, config=with_interface("f")), expected=expected)

    assert step.status == "failed"
    assert said in step.reason
    assert [test.passed for test in step.tests] == [False, False]


def test_what_an_answer_prints_is_kept_apart() -> None:
    answer = "def f(n):\n    print('a word', flush=True)\n    return n\n"

    step = graded(answer, ONE, "f")

    assert step.status == "passed"
    assert "a word" in step.output


def test_a_broken_grader_is_not_the_answers_fault() -> None:
    grader = "import os\nfrom answer import f\ndef test_first():\n    os._exit(0)\n"

    step = graded("def f(n):\n    return n\n", grader, "f")

    assert step.status == "error"


def test_an_exceptions_facts_are_there_however_its_class_keeps_them() -> None:
    answer = """
class ParseError(ValueError):
    kind = "parse"
    __slots__ = ("line",)
    def __init__(self, text, line):
        super().__init__(text)
        self.line, self._column = line, 7
    @property
    def column(self): return self._column
    @property
    def broken(self): raise RuntimeError
    def told(self): return "it"
def fail(): raise ParseError("no", 3)
"""
    grader = """
import pytest
from answer import ParseError, fail
def test_facts():
    with pytest.raises(ParseError, match="no") as caught: fail()
    assert (caught.value.kind, caught.value.line, caught.value.column) == ("parse", 3, 7)
    assert not hasattr(caught.value, "broken")
"""

    step = graded(answer, grader, "ParseError", "fail")

    assert step.status == "passed", step.output


def test_a_call_that_is_cancelled_before_it_has_begun_is_answered(tmp_path: Path) -> None:
    (tmp_path / "answer.py").write_text("from asyncio import sleep\n")
    call = {"id": 1, "do": "call", "on": ["ref", "answer", "sleep"], "name": "", "loop": 1}
    call |= {"given": ["tuple", ["list", 60], ["dict"]], "wait": True}
    ours, theirs = socket.socketpair()
    ours.sendall(pack(call) + pack({"id": 1, "do": "cancel", "loop": 1}))
    ours.settimeout(30)
    words = [sys.executable, "-m", server.__name__, json.dumps({"answer": ["sleep"]})]
    env = {**os.environ, "EVALS_CHANNEL": str(theirs.fileno())}

    with subprocess.Popen(words, cwd=tmp_path, env=env, pass_fds=[theirs.fileno()]), ours:
        theirs.close()
        frames = Frames(ours)
        assert frames.receive() == {"ready": True}
        assert frames.receive()["cancelled"]
