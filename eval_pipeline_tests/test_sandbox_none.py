"""Commands without a sandbox: still in a folder of their own, without keys, and with an end."""

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from eval_pipeline.suites.coding.sandbox.base import Command, Mount, SandboxError
from eval_pipeline.suites.coding.sandbox.unconfined import NoSandbox
from eval_pipeline_tests.sandboxes import SMALL, python, run, shell


def test_a_command_runs_in_a_copy_that_is_thrown_away(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")

    finished = run(shell("cat a.txt; echo new > a.txt; pwd", folder=tmp_path), NoSandbox())

    where = Path(finished.output.removeprefix("old").strip())
    assert where.name.startswith("unsafe-")
    assert not where.exists()
    assert (tmp_path / "a.txt").read_text() == "old"


def test_no_variable_of_ours_is_handed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "secret")

    finished = run(shell("env | cut -d= -f1 | sort", env={"A": "1"}), NoSandbox())

    assert finished.output.split() == ["A", "HOME", "LANG", "PATH", "PWD"]


def test_places_of_the_sandbox_are_found_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "tool").write_text("#!/bin/sh\necho tool $1 $P; pwd")
    (tmp_path / "tool").chmod(0o755)
    mounts = (Mount(tmp_path, "/tools"),)
    command = Command(("/tools/tool", "--at=/work/x"), mounts=mounts, env={"P": "/toolset:/tools"})

    finished = run(command, NoSandbox())

    said, where = finished.output.splitlines()
    assert said == f"tool --at={where}/x /toolset:{tmp_path}"


def test_files_come_out() -> None:
    finished = run(
        shell("mkdir o; echo 1 > o/x; ln -s /etc/passwd o/y", collect=("o",)), NoSandbox()
    )

    assert finished.files == {"o/x": b"1\n"}


@pytest.mark.parametrize(
    ("script", "ending"),
    [
        ("import time; time.sleep(60)", "timeout"),
        ("while True: print('x' * 1000)", "output"),
        ("x = []\nwhile True: x.append(bytearray(2**20))", "memory"),
        (
            "import os, time\nfor _ in range(30): os.fork() or time.sleep(60)\ntime.sleep(60)",
            "processes",
        ),
    ],
)
def test_limits_hold_for_those_who_stay_in_their_tree(script: str, ending: str) -> None:
    finished = run(python(script, limits=replace(SMALL, seconds=2)), NoSandbox())

    assert finished.ending == ending


def test_a_child_in_a_session_of_its_own_is_ended_too(tmp_path: Path) -> None:
    script = f"setsid sh -c 'echo $$ > {tmp_path}/pid; exec sleep 60' & sleep 60"

    run(shell(script, limits=replace(SMALL, seconds=0.5)), NoSandbox())

    assert not Path("/proc", (tmp_path / "pid").read_text().strip(), "exe").exists()


def test_a_channel_goes_in() -> None:
    ours, theirs = socket.socketpair()
    script = "import os; os.write(int(os.environ['EVALS_CHANNEL']), b'hi')"

    with ours:
        run(python(script, channel=theirs), NoSandbox())
        heard = ours.recv(10)

    assert heard == b"hi"


def test_what_could_not_begin_is_no_failure_of_the_command() -> None:
    with pytest.raises(SandboxError, match="no program"):
        run(Command(("no-such-program",)), NoSandbox())
