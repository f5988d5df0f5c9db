"""Commands in containers, told to an engine that writes down what it is told.

No engine is at hand where tests run, so a script stands in for it: it keeps the words it was given
and plays the part of a container that ends in one of a few ways.
"""

import asyncio
import io
import json
import os
import socket
import tarfile
from pathlib import Path

import pytest

from eval_pipeline.suites.coding.sandbox.base import Command, Finished, Limits, Mount, SandboxError
from eval_pipeline.suites.coding.sandbox.container import ContainerSandbox, host_image, host_mounts

ENGINE = r"""#!/bin/sh
here=$(dirname "$0")
for word; do printf '%s\036' "$word"; done >> "$here/told"
printf '\035' >> "$here/told"
case $1 in
run) cat > "$here/files.tar"; . "$here/plays" ;;
image) test -e "$here/image" ;;
import) cat > "$here/image" ;;
inspect) cat "$here/state" ;;
esac
"""
STARTS = "echo 'the command starts' >&2\n"
FLOODS_AFTER_ITS_END = """mkfifo "$here/state"
(until grep -q inspect "$here/told"; do sleep 0.05; done
head -c 9000 /dev/zero; echo false > "$here/state") &
exit 3"""


def an_engine(folder: Path, plays: str, *, name: str = "podman", state: str = "false") -> Path:
    (folder / name).write_text(ENGINE)
    (folder / name).chmod(0o755)
    (folder / "plays").write_text(plays)
    if state:
        (folder / "state").write_text(state)
    return folder / name


def told(folder: Path) -> list[list[str]]:
    calls = (folder / "told").read_text().split("\x1d")[:-1]
    return [call.split("\x1e")[:-1] for call in calls]


def run_call(folder: Path) -> list[str]:
    return next(call for call in told(folder) if call[0] == "run")


def run(engine: Path, command: Command) -> Finished:
    return asyncio.run(ContainerSandbox(str(engine)).run(command))


def test_an_engine_is_told_to_take_everything_away(tmp_path: Path) -> None:
    engine = an_engine(tmp_path, STARTS + "echo hello")
    tools = Mount(tmp_path, "/tools")
    limits = Limits(memory_mb=100, disk_mb=20, processes=7)
    command = Command(("a", "b c"), mounts=(tools,), env={"K": "v"}, limits=limits)

    finished = run(engine, command)

    ran = run_call(tmp_path)
    name = ran[ran.index("--name") + 1]
    memory = ["--memory", "120m", "--memory-swap", "120m"]
    folder = "rw,exec,nosuid,nodev,mode=1777,size=20m"
    assert ran[: ran.index("-c")] == [
        *("run", "--name", name, "--interactive", "--network", "none", "--read-only"),
        *("--cap-drop", "all", "--security-opt", "no-new-privileges", "--user", "65534:65534"),
        *(*memory, "--ipc", "private", "--pids-limit", "7", "--shm-size", "64m"),
        *("--ulimit", "core=0:0", "--ulimit", "nofile=1024:1024"),
        *("--tmpfs", f"/work:{folder}", "--tmpfs", f"/tmp:{folder}"),
        *host_mounts(),
        *("--mount", f"type=bind,source={tmp_path},target=/tools,readonly"),
        *("--env", "PATH=/usr/local/bin:/usr/bin:/bin", "--env", "HOME=/tmp"),
        *("--env", "LANG=C.UTF-8", "--env", "K=v", "--workdir", "/work"),
        *(host_image()[0], "/bin/sh"),
    ]
    assert ran[-3:] == ["sh", "a", "b c"]
    assert told(tmp_path)[-2:] == [["kill", name], ["rm", "--force", name]]
    assert (finished.ending, finished.output) == ("exited", "hello\n")


def test_keys_of_ours_are_neither_among_the_words_nor_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:very-secret@example.org")
    monkeypatch.setenv("DOCKER_HOST", "unix:///engine")
    engine = an_engine(tmp_path, STARTS + 'env > "$here/environment"')

    run(engine, Command(("true",)))

    environment = (tmp_path / "environment").read_text()
    assert "very-secret" not in json.dumps(told(tmp_path)) + environment
    assert "DOCKER_HOST=unix:///engine" in environment


def test_files_go_in_as_a_stream_and_come_out_as_one(tmp_path: Path) -> None:
    (tmp_path / "answer").mkdir()
    (tmp_path / "answer/main.py").write_text("1")
    engine = an_engine(tmp_path, STARTS + 'cd "$here/answer"; tar -c main.py >&2')

    finished = run(engine, Command(("x",), folder=tmp_path / "answer", collect=("main.py",)))

    with tarfile.open(tmp_path / "files.tar") as tar:
        assert tar.getnames() == ["main.py"]
    assert finished.files == {"main.py": b"1"}


@pytest.mark.parametrize(
    ("plays", "state", "ending", "code"),
    [
        (STARTS + "exit 3", "false", "exited", 3),
        (STARTS + "exit 137", "false", "killed", 137),
        (STARTS + "exit 137", "true", "memory", None),
        (STARTS + "exec sleep 60", "false", "timeout", None),
        (STARTS + "while true; do echo xxxxxxxxxxxxxxxxx; done", "false", "output", None),
        (STARTS + FLOODS_AFTER_ITS_END, "", "output", None),
    ],
)
def test_how_it_ended_is_told(
    tmp_path: Path, plays: str, state: str, ending: str, code: int | None
) -> None:
    engine = an_engine(tmp_path, plays, state=state)

    finished = run(engine, Command(("x",), limits=Limits(seconds=1, output_kb=8)))

    assert (finished.ending, finished.exit_code) == (ending, code)


@pytest.mark.parametrize(
    ("plays", "state", "says"),
    [
        ("echo 'Cannot connect to the daemon' >&2; exit 125", "false", "Cannot connect"),
        (STARTS + "exit 125", "", "lost the container"),
    ],
)
def test_an_engine_out_of_order_is_no_failure_of_the_command(
    tmp_path: Path, plays: str, state: str, says: str
) -> None:
    engine = an_engine(tmp_path, plays, state=state)

    with pytest.raises(SandboxError, match=says):
        run(engine, Command(("x",)))


def test_the_programs_of_this_machine_are_mounted_into_an_image_made_once(tmp_path: Path) -> None:
    engine = an_engine(tmp_path, STARTS)
    name, content = host_image()

    run(engine, Command(("x",)))
    run(engine, Command(("x",)))

    calls = told(tmp_path)
    assert [call[0] for call in calls].count("import") == 1
    assert (tmp_path / "image").read_bytes() == content
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert "etc/passwd" in tar.getnames()
    assert all(name in call for call in calls if call[0] == "run")
    assert "type=bind,source=/usr,target=/usr,readonly" in json.dumps(calls)


def test_podman_hands_a_channel_over(tmp_path: Path) -> None:
    engine = an_engine(tmp_path, STARTS + "echo hi >&3")
    ours, theirs = socket.socketpair()

    with ours:
        run(engine, Command(("x",), channel=theirs))
        heard = ours.recv(10)

    assert heard == b"hi\n"
    assert "EVALS_CHANNEL=3" in run_call(tmp_path)
    assert {"--preserve-fds", "1"} <= set(run_call(tmp_path))


def test_docker_can_not_and_says_so(tmp_path: Path) -> None:
    engine = an_engine(tmp_path, STARTS, name="docker")
    ours, theirs = socket.socketpair()

    with ours, theirs, pytest.raises(SandboxError, match="podman"):
        run(engine, Command(("x",), channel=theirs))


def test_podman_is_taken_before_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("docker", "podman"):
        an_engine(tmp_path, STARTS, name=name)
    monkeypatch.setenv("PATH", os.pathsep.join([str(tmp_path), "/bin"]))

    found = ContainerSandbox.found()

    assert found.engine == str(tmp_path / "podman")
