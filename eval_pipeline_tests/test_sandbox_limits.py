"""What a command may use of time, memory, disk and output, and that nothing outlives it."""

import os
import secrets
import signal
import subprocess
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from eval_pipeline.suites.coding.sandbox.base import Ending, Limits
from eval_pipeline_tests.sandboxes import SMALL, python, run, shell

GROWING = "x = []\nwhile True: x.append(bytearray(2**20))"
FILLING = """
import sys
with open(sys.argv[1], "wb") as file:
    while True: file.write(b"x" * 2**20)
"""
EXHAUSTING: dict[str, tuple[str, tuple[str, ...], Ending]] = {
    "memory of one process": (GROWING, (), "memory"),
    "memory of a few processes": (
        "import os, time\nos.fork(); os.fork(); x = bytearray(60 * 2**20); time.sleep(60)",
        (),
        "memory",
    ),
    "memory in all file systems": (
        "import time\nx = bytearray(105 * 2**20)\n"
        "for folder in ('/tmp', '/work', '/dev/shm'):\n"
        " open(folder + '/x', 'wb').write(b'x' * 2**23)\n"
        "time.sleep(60)",
        (),
        "memory",
    ),
    "processes": (
        "import os\nwhile True:\n try: os.fork()\n except OSError: pass",
        (),
        "processes",
    ),
    "threads": (
        "import threading, time\nwhile True:\n"
        " try: threading.Thread(target=time.sleep, args=(60,)).start()\n"
        " except RuntimeError: pass",
        (),
        "processes",
    ),
    "memory of the kernel": (
        "import os, socket, time\n"
        "for _ in range(3): os.fork()\n"
        "kept = [socket.socketpair() for _ in range(100)]\n"
        "time.sleep(60)",
        (),
        "memory",
    ),
    "the disk at /work": (FILLING, ("/work/x",), "exited"),
    "the disk at /tmp": (FILLING, ("/tmp/x",), "exited"),
    "shared memory": (FILLING, ("/dev/shm/x",), "exited"),
    "output": ("while True: print('x' * 1000)", (), "output"),
    "errors": ("import sys\nwhile True: print('x' * 1000, file=sys.stderr)", (), "output"),
}


@pytest.mark.parametrize("what", EXHAUSTING)
def test_no_command_uses_more_than_its_limits(what: str) -> None:
    script, arguments, ending = EXHAUSTING[what]

    finished = run(python(script, *arguments))

    assert finished.ending == ending, finished
    assert not finished.succeeded
    assert len(finished.output) <= SMALL.output_kb * 1024


def test_files_without_content_count_as_memory() -> None:
    script = "n = 0\nwhile True:\n n += 1; open(f'/tmp/{n}', 'w').close()"

    finished = run(python(script, limits=replace(SMALL, memory_mb=16, disk_mb=4)))

    assert finished.ending == "memory"


def test_what_waits_in_a_socket_can_not_be_made_much() -> None:
    script = """
import socket
one, other = socket.socketpair()
before = one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
    one.setsockopt(socket.SOL_SOCKET, option, 2**24)
one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
print(one.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == before)
print(one.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE))
"""

    finished = run(python(script))

    assert finished.output == "True\n1\n"


def test_a_crowd_that_wants_to_run_yields_to_others_even_in_sessions_of_its_own() -> None:
    script = """
import os
for _ in range(12):
    if os.fork() == 0:
        os.setsid()
        while True: pass
while not os.getpriority(os.PRIO_PROCESS, 0): pass
print(os.getpriority(os.PRIO_PROCESS, 0))
"""

    finished = run(python(script))

    assert finished.output == "19\n"


STAYING = {
    "sleeping": "import time; time.sleep(600)",
    "ignoring signals": """
import signal, time
for number in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
while True: time.sleep(1)""",
    "having closed its output": "import os, time; os.closerange(0, 99); time.sleep(600)",
    "stopped": "import os, signal; os.kill(os.getpid(), signal.SIGSTOP)",
}


@pytest.mark.parametrize("how", STAYING)
def test_no_command_stays_longer_than_its_time(how: str) -> None:
    finished = run(python(STAYING[how], limits=replace(SMALL, seconds=0.4)))

    assert finished.ending == "timeout"
    assert finished.exit_code is None


LEAVING = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/bin/sleep", ["sleep", sys.argv[1]])
    os._exit(0)
time.sleep(0.1)
print("left")
"""


def sleepers(token: str) -> list[int]:
    found = []
    for process in Path("/proc").iterdir():
        with suppress(OSError):
            if process.name.isdigit() and token.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def test_nothing_survives_that_left_its_session_and_its_parent(tmp_path: Path) -> None:
    inside, outside = (f"60.{secrets.randbelow(10**12):012}" for _ in range(2))

    finished = run(python(LEAVING, inside))
    subprocess.run(
        [*python(LEAVING, outside).argv], stdout=subprocess.DEVNULL, cwd=tmp_path, check=True
    )

    assert (finished.ending, finished.output) == ("exited", "left\n")
    assert not sleepers(inside)
    survivors = sleepers(outside)
    for survivor in survivors:
        os.kill(survivor, signal.SIGKILL)
    assert survivors


def test_a_grandchild_that_holds_the_output_open_holds_up_nobody() -> None:
    limits = Limits(seconds=30)

    finished = run(shell("sleep 600 & echo done", limits=limits))

    assert (finished.ending, finished.output) == ("exited", "done\n")
