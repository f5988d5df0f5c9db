"""An honest command in the sandbox: what it finds, what comes of it, and that it always works."""

import asyncio
import os
import secrets
import socket
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import uvloop

from eval_pipeline.suites.coding.sandbox.base import (
    INPUT,
    WORK,
    Command,
    Finished,
    Limits,
    Mount,
    SandboxError,
)
from eval_pipeline.suites.coding.sandbox.bwrap import BwrapSandbox
from eval_pipeline.suites.coding.sandbox.supervise import LARGEST_FILE
from eval_pipeline_tests.sandboxes import SMALL, python, run, shell, the_sandbox

Loop = Callable[[], asyncio.AbstractEventLoop]
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])


def test_a_command_runs_in_a_copy_of_its_folder(tmp_path: Path) -> None:
    folder = tmp_path / "answer"
    folder.mkdir(0o700)
    (folder / "main.py").write_text("print('hello')")
    (folder / "main.py").chmod(0o600)

    finished = run(shell("cat main.py; pwd; echo changed > main.py; cat main.py", folder=folder))

    assert finished.output == "print('hello')/work\nchanged\n"
    assert (folder / "main.py").read_text() == "print('hello')"


def test_a_command_finds_what_is_mounted_also_from_where_only_we_may_look(tmp_path: Path) -> None:
    tools = tmp_path / "closed" / "tools"
    tools.mkdir(parents=True)
    (tools / "tool").write_text("#!/bin/sh\necho works")
    (tools / "tool").chmod(0o755)
    (tmp_path / "closed").chmod(0o700)
    mounts = (Mount(tools, "/opt/deep/tools"), Mount(tools / "tool", "/opt/single"))
    command = shell("/opt/deep/tools/tool; /opt/single; ls /opt", mounts=mounts)

    finished = run(command)

    assert finished.output.split() == ["works", "works", "deep", "single"]


def test_a_mount_may_lie_inside_of_the_work_folder(tmp_path: Path) -> None:
    for name in ("answer/index.js", "modules/left.js"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(name)
    mount = Mount(tmp_path / "modules", f"{WORK}/node_modules")

    finished = run(shell("cat */*.js; echo; ls", folder=tmp_path / "answer", mounts=(mount,)))

    assert finished.output == "modules/left.js\nindex.js\nnode_modules\n"


def test_a_command_has_the_variables_it_was_given_and_a_few_that_all_need() -> None:
    finished = run(shell("env | sort", env={"A": "1 \n$x", "PATH": "/bin"}))

    assert finished.output.splitlines() == [
        *("$x", "A=1 ", "HOME=/tmp", "LANG=C.UTF-8", "PATH=/bin", "PWD=/work"),
    ]


def test_a_command_may_serve_and_find_localhost_and_its_own_name() -> None:
    script = """
import pwd, os, socket
with socket.create_server(("localhost", 0)) as server:
    with socket.create_connection(("localhost", server.getsockname()[1])):
        print(socket.gethostbyname(socket.gethostname()), pwd.getpwuid(os.getuid()).pw_name)
"""

    finished = run(python(script))

    assert finished.output == "127.0.0.1 answer\n"


@pytest.mark.parametrize(
    ("script", "ending", "code"),
    [
        ("exit 0", "exited", 0),
        ("exit 7", "exited", 7),
        ("exit 255", "exited", 255),
        ("kill -9 $$", "killed", 137),
        ("kill -11 $$", "killed", 139),
    ],
)
@pytest.mark.parametrize("collect", [(), ("x",)])
def test_how_a_command_ended_is_told(
    script: str, ending: str, code: int, collect: tuple[str, ...]
) -> None:
    finished = run(shell(script, collect=collect))

    assert (finished.ending, finished.exit_code) == (ending, code)
    assert finished.succeeded == (code == 0)


def test_output_and_errors_come_together_without_what_would_move_a_cursor() -> None:
    script = r"printf 'a\033[31mred\033[0m\a\r\n'; printf '\033]0;title\007b\342\200\256c\377' >&2"

    finished = run(shell(script))

    assert finished.output == "ared\nbc\ufffd"


def test_files_come_out_but_nothing_else_that_looks_like_one() -> None:
    script = f"""
mkdir -p out/deep 'st*r' && cd out
echo 1 > deep/kept && ln deep/kept hard && ln -s /etc/passwd link && mkfifo pipe
ln -s deep folder && ln -s /etc etc
truncate -s {LARGEST_FILE + 1} huge && echo 2 > ../single && echo 3 > '../st*r/x' && echo 4 > ../str
ln -s out ../alias && echo 5 > "$(printf 'new\\nline')"
"""
    collect = ("out", "single", "st*r", "alias/deep", "missing")

    finished = run(shell(script, collect=collect))

    assert finished.succeeded, finished
    assert finished.files == {
        **{"out/deep/kept": b"1\n", "out/hard": b"1\n"},
        **{"single": b"2\n", "st*r/x": b"3\n"},
    }


def test_nothing_is_collected_from_a_command_that_was_ended() -> None:
    command = shell("echo 1 > x; sleep 60", collect=("x",), limits=replace(SMALL, seconds=0.3))

    finished = run(command)

    assert (finished.ending, finished.files) == ("timeout", {})


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", ".", "a\nb"])
def test_only_paths_inside_of_the_work_folder_can_be_asked_for(path: str) -> None:
    with pytest.raises(ValueError, match="no path inside"):
        run(shell("true", collect=(path,)))


@LOOPS
def test_a_channel_goes_in_and_ends_with_the_command(loop: Loop) -> None:
    script = """
import os, socket
with socket.socket(fileno=int(os.environ["EVALS_CHANNEL"])) as channel:
    channel.sendall(channel.recv(100)[::-1])
"""
    ours, theirs = socket.socketpair()

    async def talk() -> tuple[Finished, bytes]:
        ours.setblocking(False)
        inside = asyncio.ensure_future(the_sandbox().run(python(script, channel=theirs)))
        await asyncio.get_running_loop().sock_sendall(ours, b"abc")
        heard = await asyncio.get_running_loop().sock_recv(ours, 100)
        finished = await inside
        return finished, heard + await asyncio.get_running_loop().sock_recv(ours, 100)

    with ours, asyncio.Runner(loop_factory=loop) as runner:
        finished, heard = runner.run(talk())

    assert finished.succeeded, finished
    assert heard == b"cba"
    assert theirs.fileno() == -1


@LOOPS
def test_a_command_is_gone_whenever_it_is_cancelled(loop: Loop) -> None:
    token = f"61.{secrets.randbelow(10**12):012}"
    the_sandbox()
    open_before = open_descriptors()

    async def cancel_after(seconds: float) -> None:
        task = asyncio.ensure_future(the_sandbox().run(shell(f"sleep {token}")))
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not running(token)

    with asyncio.Runner(loop_factory=loop) as runner:
        for milliseconds in (0, 1, 2, 3, 4, 5, 6, 8, 10, 15, 20, 50):
            runner.run(cancel_after(milliseconds / 1000))

    assert open_descriptors() == open_before


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def running(token: str) -> list[str]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (Command(("no-such-program",)), "no program no-such-program"),
        (Command(("/bin/true",), folder=Path("/no/such/folder")), "/no/such/folder"),
        (Command(("/bin/true",), mounts=(Mount(Path("/no/tool"), "/tool"),)), "/no/tool"),
        (Command(("/bin/true",), mounts=(Mount(Path("/usr"), "/usr/not/there"),)), "/usr/not"),
    ],
)
def test_what_could_not_begin_is_no_failure_of_the_command(command: Command, says: str) -> None:
    with pytest.raises(SandboxError, match=says):
        run(command)


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user stays who he is")
def test_a_mount_that_the_command_could_not_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir(0o700)

    with pytest.raises(SandboxError, match=r"Only its owner may read .*private"):
        run(shell("true", mounts=(Mount(tmp_path / "private", "/x"),)))


def test_a_folder_that_does_not_fit_is_no_failure_of_the_command(tmp_path: Path) -> None:
    (tmp_path / "large").write_bytes(b"x" * 2 * 2**20)

    with pytest.raises(SandboxError, match="No space left"):
        run(shell("true", folder=tmp_path, limits=Limits(disk_mb=1)))


def test_a_sandbox_that_can_not_be_started_is_no_failure_of_the_command() -> None:
    for program in ("/no/bwrap", "/bin/false"):
        with pytest.raises(SandboxError, match="could not"):
            run(shell("true"), BwrapSandbox(program))


def test_words_of_the_sandbox_in_the_output_mean_nothing() -> None:
    finished = run(shell("echo 'the command starts'; echo 'the command starts' >&2; exit 3"))

    assert (finished.ending, finished.exit_code) == ("exited", 3)
    assert finished.output == "the command starts\n" * 2


def test_two_commands_at_once_see_nothing_of_each_other(tmp_path: Path) -> None:
    sandbox = the_sandbox()
    (tmp_path / "a").mkdir()
    (tmp_path / "a/secret.txt").write_text("mine")
    script = f"cat {INPUT}/* {WORK}/* 2>/dev/null; ls /tmp; echo x > /tmp/left"

    first = run(shell(script, folder=tmp_path / "a"), sandbox)
    second = run(shell(script), sandbox)

    assert "mine" in first.output
    assert second.output == ""
