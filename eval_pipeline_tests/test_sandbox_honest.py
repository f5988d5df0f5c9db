"""Honest commands in the sandbox: they work every time, many at once, for root and for others."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from bench.options import Options
from bench.sandbox import section
from eval_pipeline.suites.coding.sandbox.base import Command, Finished, Limits
from eval_pipeline_tests.sandboxes import python, run, shell, the_sandbox


def test_an_honest_command_works_fifty_times_also_many_at_once(tmp_path: Path) -> None:
    (tmp_path / "value.txt").write_text("41")
    command = shell(
        "for i in 1 2 3 4 5; do (sleep 0.01; echo $i >> sum) & done; wait; wc -l < sum; "
        "expr $(cat value.txt) + 1 > out",
        folder=tmp_path,
        collect=("out",),
        limits=Limits(),
    )

    async def fifty() -> list[Finished]:
        sandbox, at_once = the_sandbox(), asyncio.Semaphore(5)

        async def one() -> Finished:
            async with at_once:
                return await sandbox.run(command)

        return await asyncio.gather(*(one() for _ in range(50)))

    finished = asyncio.run(fifty())

    assert {(one.ending, one.exit_code, one.output) for one in finished} == {("exited", 0, "5\n")}
    assert all(one.files == {"out": b"42\n"} for one in finished)


def test_processes_are_counted_for_each_command_alone() -> None:
    script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do sleep 0.5 & done; wait; echo ok"

    async def three() -> list[Finished]:
        return await asyncio.gather(*(the_sandbox().run(shell(script)) for _ in range(3)))

    finished = asyncio.run(three())

    assert [one.output for one in finished] == ["ok\n"] * 3


def test_forks_that_share_their_memory_are_not_counted_twice() -> None:
    script = """
import os, time
shared = bytearray(b"x") * (60 * 2**20)
for _ in range(4):
    if os.fork() == 0:
        time.sleep(0.4)
        os._exit(0)
for _ in range(4):
    os.wait()
print("ok")
"""

    finished = run(python(script))

    assert finished.output == "ok\n", finished


AS_ANYBODY = """
import asyncio, json, os, sys
sys.path[:0] = json.loads(sys.argv[1])
from eval_pipeline.suites.coding.sandbox.bwrap import BwrapSandbox
from eval_pipeline.suites.coding.sandbox.opening import prove
from eval_pipeline.suites.coding.sandbox.base import Command, Limits
async def main():
    sandbox = BwrapSandbox.found()
    await prove(sandbox)
    some = "i=0; while [ $i -lt 15 ]; do sleep 60 & i=$((i+1)); done; wait"
    more = "while true; do sleep 60 & done"
    small = Limits(seconds=20, processes=16)
    commands = [("unshare", "-U", "true"), ("sh", "-c", "echo $(id -u)")]
    commands += [("sh", "-c", some), ("sh", "-c", more)]
    finished = [await sandbox.run(Command(words, limits=small)) for words in commands]
    print(json.dumps([os.geteuid(), *((one.ending, one.output) for one in finished)]))
asyncio.run(main())
"""


def test_an_ordinary_user_has_the_same_walls(tmp_path: Path) -> None:
    the_sandbox()
    become = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    if os.geteuid() != 0:
        become = []
    interpreter = next(filter(reachable, (sys.executable, "/usr/bin/python3")), None)
    probe = [*become, "bwrap", "--unshare-user", "--ro-bind", "/", "/", "/bin/true"]
    if interpreter is None or subprocess.run(probe, check=False).returncode != 0:
        pytest.skip("no other user can run Python or make a namespace on this machine")
    paths = json.dumps([path for path in sys.path if path])

    done = subprocess.run(
        [*become, interpreter, "-B", "-c", AS_ANYBODY, paths],
        capture_output=True,
        cwd="/",
        text=True,
        check=True,
    )

    user, namespace, name, some, more = json.loads(done.stdout)
    assert user != 0
    assert namespace == ["exited", "unshare: unshare failed: Operation not permitted\n"]
    assert name == ["exited", "1000\n"]
    assert some == ["processes", ""]
    assert more[0] == "processes" or "Cannot fork" in more[1]


def reachable(program: str) -> bool:
    """Whether everybody may run it, and it is of the version that our packages are for."""
    path = Path(program).resolve()
    if os.geteuid() == 0 and not all(part.stat().st_mode & 0o1 for part in (path, *path.parents)):
        return False
    version = f"{sys.version_info[0]}.{sys.version_info[1]}"
    says = "import sys; print('%d.%d' % sys.version_info[:2])"
    return subprocess.check_output([program, "-c", says], text=True).strip() == version


@pytest.mark.slow
def test_what_the_sandbox_costs_can_be_measured(tmp_path: Path) -> None:
    the_sandbox()

    (table,) = section(Options(tmp_path, scale=0.05, console=Console(quiet=True)))

    ratios = list(table.column("ratio").values())
    assert len(ratios) == 3
    assert all(isinstance(ratio, float) and ratio > 1 for ratio in ratios)


def test_node_works_with_its_threads() -> None:
    node = shutil.which("node", path="/usr/bin:/usr/local/bin")
    script = "new (require('worker_threads').Worker)('console.log(true)', {eval: true})"
    if node is None:
        pytest.skip("there is no node on this machine")

    finished = run(Command((node, "-e", script), limits=Limits()))

    assert finished.output == "true\n", finished


def test_python_finds_all_it_needs_for_processes_of_its_own() -> None:
    script = """
import multiprocessing, sqlite3, tempfile, threading
if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with context.Pool(2) as pool, tempfile.TemporaryFile() as file:
        print(pool.map(abs, [-1, 2]), context.Value("i", 3).value, file.write(b"x"))
"""

    finished = run(python(script, limits=Limits()))

    assert finished.output == "[1, 2] 3 1\n", finished
