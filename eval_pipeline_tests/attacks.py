"""Wrong answers that try to be graded as right ones, by what each of them does to the tests."""

RIGHT = """
def add(a, b):
    return a + b

def largest(items):
    return max(items)
"""
WRONG = """
def add(a, b):
    return 0

def largest(items):
    return 0
"""

# Equal to, ordered with and containing everything: fools whoever compares in its process.
ALWAYS_EQUAL = """
class Anything:
    def __eq__(self, other): return True
    def __hash__(self): return 0

def add(a, b):
    return Anything()

def largest(items):
    if not items:
        raise ValueError
    return Anything()
"""

FOOLS_WHO_SHARES_ITS_PROCESS = {
    "equal_to_everything": ALWAYS_EQUAL,
    "reads_the_frame_of_the_test": """
import sys

def _wanted(frame):
    return frame.f_locals["expected"]

def add(a, b):
    return _wanted(sys._getframe(1))

def largest(items):
    return _wanted(sys._getframe(1))
""",
    "changes_the_locals_of_the_test": """
import ctypes, sys
def _change():
    frame = sys._getframe(2)
    frame.f_locals["expected"] = 1
    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
def add(a, b):
    _change()
    return 1
def largest(items):
    _change()
    return 1
""",
    "int_with_a_lying_eq": """
class Lie(int):
    def __eq__(self, other): return True
    __hash__ = int.__hash__
class Text(str):
    def __eq__(self, other): return True
    __hash__ = str.__hash__
def add(a, b): return Lie(0)
def largest(items): return Text("")
""",
}
"""Known not to show where tests and answer share a process; the other verdict catches them."""

ATTACKS = {
    "exits_with_success_on_import": "import os\nos._exit(0)\n",
    "exits_with_pytests_failure_code": "import os\nos._exit(1)\n",
    "sys_exit_on_import": "import sys\nsys.exit(0)\n",
    "exits_in_a_call": "import os\ndef add(a, b): os._exit(0)\ndef largest(items): os._exit(0)\n",
    "exits_with_the_expected_code_in_a_call": (
        "import os\ndef add(a, b): os._exit(1)\ndef largest(items): os._exit(1)\n"
    ),
    "skips": "import pytest\ndef add(a, b): pytest.skip()\ndef largest(items): pytest.skip()\n",
    "xfails": "import pytest\ndef add(a, b): pytest.xfail()\ndef largest(items): pytest.xfail()\n",
    "skips_on_import": "import pytest\npytest.skip(allow_module_level=True)\n",
    "ends_the_session": "import pytest\npytest.exit('done', returncode=0)\n",
    "interrupts": "def add(a, b): raise KeyboardInterrupt\nlargest = add\n",
    "passes_every_report": """
from _pytest import reports
made = reports.TestReport.from_item_and_call.__func__
def passing(cls, item, call):
    report = made(cls, item, call)
    report.outcome, report.longrepr = "passed", None
    return report
reports.TestReport.from_item_and_call = classmethod(passing)
"""
    + WRONG,
    "empties_the_running_of_tests": """
from _pytest import python
python.Function.runtest = lambda self: None
python.pytest_pyfunc_call = lambda pyfuncitem: True
"""
    + WRONG,
    "calls_nothing": """
from _pytest import runner
made = runner.CallInfo.from_call.__func__
runner.CallInfo.from_call = classmethod(
    lambda cls, func, when, reraise=None: made(cls, lambda: None, when, reraise)
)
"""
    + WRONG,
    "patches_unittest": """
import unittest
unittest.TestCase.run = lambda self, result=None: result
unittest.TestCase.assertEqual = lambda *a: None
"""
    + WRONG,
    "replaces_the_hooks": """
import gc
import pluggy
for one in gc.get_objects():
    if isinstance(one, pluggy.PluginManager):
        for name in ("pytest_runtest_call", "pytest_pyfunc_call"):
            for impl in getattr(one.hook, name).get_hookimpls():
                impl.function = lambda *args: True
"""
    + WRONG,
    "hunts_for_the_session": """
import gc
import pytest
def _forget():
    for one in gc.get_objects():
        if isinstance(one, pytest.Session):
            one.testsfailed = 0
            for item in one.items:
                item.obj = lambda **named: None
def add(a, b):
    _forget()
    return 0
def largest(items):
    _forget()
    return 0
""",
    "rewrites_the_tests": """
import gc
import types
def _empty(): pass
def _rewrite():
    for one in gc.get_objects():
        if isinstance(one, types.FunctionType) and one.__name__.startswith("test_"):
            try:
                one.__code__ = _empty.__code__
            except ValueError:
                pass
def add(a, b):
    _rewrite()
    return 0
def largest(items):
    _rewrite()
    return 0
""",
    "len_and_isinstance_lie": """
import builtins
builtins.isinstance = lambda *args: True
builtins.sorted = lambda items, **named: items
"""
    + WRONG,
    "assertion_error_is_harmless": """
import builtins
import pytest
class Fine(pytest.skip.Exception): pass
builtins.AssertionError = Fine
"""
    + WRONG,
    "raises_lets_all_through": """
import contextlib
import pytest
pytest.raises = lambda *args, **named: contextlib.nullcontext()
"""
    + WRONG,
    "traces": """
import sys
def _trace(frame, event, arg):
    if frame.f_code.co_name.startswith("test_"):
        frame.f_trace_lines = False
    return _trace
sys.settrace(_trace)
"""
    + WRONG,
    "replaces_modules": """
import sys
import types
fake = types.ModuleType("test_answer")
for name in ("test_add", "test_largest", "test_nothing"):
    setattr(fake, name, lambda: None)
sys.modules["test_answer"] = fake
sys.modules["_pytest.runner"] = fake
sys.modules["pytest"] = fake
"""
    + WRONG,
    "writes_result_files": """
import pathlib
text = '<testsuite tests="3" failures="0" errors="0"/>'
for name in ("junit.xml", "report.xml", "results.json", ".report.json"):
    for folder in (".", "/tmp", "/grader"):
        try:
            pathlib.Path(folder, name).write_text(text)
        except OSError:
            pass
"""
    + WRONG,
    "prints_success": """
import atexit, sys
print("3 passed in 0.01s")
atexit.register(lambda: print("3 passed in 0.01s", file=sys.__stdout__))
"""
    + WRONG,
    "exits_well_in_the_end": "import atexit, os\natexit.register(os._exit, 0)\n" + WRONG,
    "writes_to_everything_open": """
import json, os
word = json.dumps([json.dumps([1, "test", "test_answer.py::test_add", True, "", ""]), "0" * 128])
body = b"R" + word.encode()
for number in range(3, 64):
    try:
        os.write(number, len(body).to_bytes(4, "big") + body)
    except OSError:
        pass
"""
    + WRONG,
    "forges_replies": """
import json, os
def _forge():
    for number in range(3, 64):
        for reply in range(40):
            body = json.dumps({"id": reply, "classes": [], "value": 5}).encode()
            try:
                os.write(number, len(body).to_bytes(4, "big") + body)
            except OSError:
                break
def add(a, b):
    _forge()
    return 0
def largest(items):
    _forge()
    return 0
""",
    "announces_too_much": """
import os
def add(a, b):
    for number in range(3, 64):
        try:
            os.write(number, b"\\xff" * 4)
        except OSError:
            pass
    return 0
largest = add
""",
    "stops_the_clock": "import time\ntime.time = time.perf_counter = lambda: 0.0\n" + WRONG,
    "reads_the_tests": """
import pathlib, re
def _expected(name):
    for path in [*pathlib.Path("/grader").glob("*.py"), *pathlib.Path("..").glob("grader/*.py")]:
        raise SystemExit(0)
    return 0
def add(a, b): return _expected("add")
def largest(items): return _expected("largest")
""",
    "kills_its_parent": """
import os, signal
def add(a, b):
    for victim in (os.getppid(), -1):
        try:
            os.kill(victim, signal.SIGKILL)
        except OSError:
            pass
    return 0
largest = add
""",
    "recurses_for_ever": "def add(a, b): return add(a, b)\nlargest = add\n",
    "leaves_threads_behind": """
import threading, time
def _for_ever():
    while True:
        time.sleep(0.01)
for _ in range(4):
    threading.Thread(target=_for_ever).start()
"""
    + WRONG,
    "module_answers_anything": """
class Anything:
    def __getattr__(self, name): return self
    def __call__(self, *args, **named): return self
    def __bool__(self): return True
    def __eq__(self, other): return NotImplemented
    __hash__ = None
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return Anything()
""",
    "swallows_with_a_thread": """
import os, threading
threading.Timer(0.05, os._exit, (0,)).start()
"""
    + WRONG,
    "replaces_the_excepthook": """
import sys
sys.excepthook = lambda *args: None
sys.unraisablehook = lambda *args: None
"""
    + WRONG,
    "finder_for_everything": """
import sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("test_"):
            raise SystemExit(0)
sys.meta_path.insert(0, Finder())
"""
    + WRONG,
    "audits": """
import sys
def _hook(event, args):
    if event == "compile":
        raise SystemExit(0)
sys.addaudithook(_hook)
"""
    + WRONG,
}
