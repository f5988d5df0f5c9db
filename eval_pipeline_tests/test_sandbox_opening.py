"""Opening a sandbox: what is believed, what is refused, and which ways out are named."""

import asyncio
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from eval_pipeline.suites.coding.sandbox import bwrap
from eval_pipeline.suites.coding.sandbox import usage as watching
from eval_pipeline.suites.coding.sandbox.base import SandboxError
from eval_pipeline.suites.coding.sandbox.bwrap import BwrapSandbox
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox, prove
from eval_pipeline.suites.coding.sandbox.unconfined import NoSandbox
from eval_pipeline_tests.sandboxes import run, shell, the_sandbox

OPENING = """
import sys
from eval_pipeline.suites.coding.sandbox.opening import open_sandbox
from eval_pipeline.suites.coding.sandbox.base import SandboxError
try:
    print(open_sandbox(sys.argv[1]).isolation)
except SandboxError as error:
    print(error)
"""


def opened(path: Path, isolation: str = "bwrap") -> str:
    """What a new process says that finds its programs there and nowhere else."""
    words = [sys.executable, "-c", OPENING, isolation]
    return subprocess.check_output(words, env={"PATH": str(path)}, text=True)


def a_program(folder: Path, name: str, script: str) -> Path:
    (folder / name).write_text(f"#!/bin/sh\n{script}")
    (folder / name).chmod(0o755)
    return folder / name


@pytest.mark.parametrize(("isolation", "other"), [("bwrap", "container"), ("container", "bwrap")])
def test_without_its_program_a_sandbox_is_refused_with_both_ways_out(
    tmp_path: Path, isolation: str, other: str
) -> None:
    said = opened(tmp_path, isolation)

    assert said.startswith(f"No sandbox ({isolation})")
    assert f'isolation = "{other}"' in said
    assert "--unsafe-no-sandbox" in said
    assert ("apt-get install bubblewrap" in said) == (isolation == "bwrap")


def test_an_engine_that_can_not_run_tests_is_refused_before_anything_is_graded(
    tmp_path: Path,
) -> None:
    a_program(tmp_path, "docker", "exit 0")

    said = opened(tmp_path, "container")

    assert said.startswith("No sandbox (container): Only podman can hand a channel to a command")


def test_where_namespaces_are_forbidden_it_is_said_who_may_allow_them(tmp_path: Path) -> None:
    a_program(tmp_path, "bwrap", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")

    said = opened(tmp_path)

    assert "setting up uid map: Permission denied" in said
    assert "kernel.apparmor_restrict_unprivileged_userns=0" in said
    assert "bwrap-userns-restrict" in said
    assert 'isolation = "container"' in said
    assert "--unsafe-no-sandbox" in said


def test_walls_that_do_not_hold_are_not_believed(tmp_path: Path) -> None:
    # It runs the command, and that is all it does.
    bare = """
cd /tmp; while [ "$1" != -- ]; do shift; done; shift
if [ "$(id -u)" = 0 ]; then shift 3; script=$1; shift; exec /bin/sh -c "$script" sh "$@"; fi
exec "$@"
"""
    program = a_program(tmp_path, "bwrap", bare)

    with pytest.raises(SandboxError, match="does not hold") as refused:
        asyncio.run(prove(BwrapSandbox(str(program))))

    assert "files of the outside" in str(refused.value)
    assert "network of the outside" in str(refused.value)
    assert "not filtered" in str(refused.value)


def test_no_command_without_walls_unless_asked_for_twice(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(SandboxError, match="--unsafe-no-sandbox"):
        open_sandbox("none")
    with caplog.at_level(logging.WARNING):
        unsafe = open_sandbox("bwrap", unsafe=True)

    assert isinstance(unsafe, NoSandbox)
    assert unsafe.isolation == "none"
    assert "WITHOUT A SANDBOX" in caplog.text


def test_a_sandbox_is_proven_once_and_also_while_something_else_is_waited_for() -> None:
    first = the_sandbox()

    async def inside() -> object:
        return open_sandbox("bwrap")

    again = asyncio.run(inside())

    assert again is first
    assert first.isolation == "bwrap"


def test_the_decoy_does_not_stay() -> None:
    asyncio.run(prove(the_sandbox()))

    inherited = subprocess.check_output(["/usr/bin/env"], text=True)

    assert "DECOY" not in inherited


@pytest.mark.parametrize(
    ("mapping", "lowest", "highest"),
    [
        ("0 0 4294967295", 1_900_000_000, 2_100_000_000),
        ("0 1000 1\n1 100000 65536", 32769, 65536),
        ("0 100000 65536", 32768, 65535),
    ],
)
def test_a_fresh_user_is_one_that_this_machine_has(
    tmp_path: Path, mapping: str, lowest: int, highest: int
) -> None:
    (tmp_path / "uid_map").write_text(mapping)

    drawn = {bwrap.fresh_uid(tmp_path / "uid_map") for _ in range(50)}

    assert all(lowest <= uid <= highest for uid in drawn)
    assert len(drawn) > 10


def test_a_tree_of_processes_is_seen_with_all_its_branches() -> None:
    script = "sh -c 'sleep 60 & sleep 60 & echo ready; wait' & wait"
    words = ["/bin/sh", "-c", script]
    with subprocess.Popen(words, stdout=subprocess.PIPE, start_new_session=True) as root:
        assert root.stdout is not None
        root.stdout.readline()

        found = watching.tree(root.pid)
        usage = watching.usage(found, enough=0)

        os.killpg(root.pid, 9)
    assert len(found) == 4
    assert usage.tasks == 4
    assert 0 < usage.memory < 20 * 2**20


def test_the_walls_are_told_on_no_command_line() -> None:
    finished = run(
        shell("tr '\\0' '\\n' < /proc/1/cmdline | grep -c -e '--ro-bin[d]' -e '--seten[v]'")
    )

    assert finished.output == "0\n"
