"""What an answer might try, and what comes of it; the same succeeds where there is no sandbox."""

import os
import secrets
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from eval_pipeline.suites.coding.sandbox.base import WORK, Mount
from eval_pipeline_tests.sandboxes import python, run, run_bare, shell

TRIED, BREACH = "tried", "BREACH"
PRELUDE = """
import ctypes, mmap, os, signal, socket, sys, time
from pathlib import Path
libc = ctypes.CDLL(None, use_errno=True)
WORLD = dict(zip(sys.argv[1::2], sys.argv[2::2]))
def succeeds(attack):
    try:
        result = attack()
    except OSError:
        return False
    return result != -1
def breach_if(seen):
    print("tried", flush=True)
    if seen:
        print("BREACH", flush=True)
"""


@dataclass(frozen=True)
class World:
    """What is worth attacking outside."""

    secret: str
    folder: Path
    port: int
    abstract: str
    victim: int

    def words(self) -> tuple[str, ...]:
        return (
            *("folder", str(self.folder), "port", str(self.port), "abstract", self.abstract),
            *("victim", str(self.victim), "half", self.secret[:16]),
        )


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    secret, name = secrets.token_hex(16), f"evals-{secrets.token_hex(8)}"
    monkeypatch.setenv("SOME_API_KEY", secret)
    for path in (".env", "data/evals.duckdb", "answers/002-other/answer.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(secret)
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX) as named,
        subprocess.Popen(["/bin/sleep", "60"]) as victim,
    ):
        abstract.bind(f"\0{name}")
        named.bind(str(tmp_path / "named.socket"))
        abstract.listen()
        named.listen()
        yield World(secret, tmp_path, server.getsockname()[1], name, victim.pid)
        victim.kill()


# Each must be seen to fail inside, and to succeed outside, where nobody needs to be root for it.
CONTAINED = {
    "read the keys in .env": """
breach_if(succeeds(lambda: Path(WORLD["folder"], ".env").read_bytes()))""",
    "read the results": """
breach_if(succeeds(lambda: Path(WORLD["folder"], "data/evals.duckdb").read_bytes()))""",
    "read another answer": """
breach_if(succeeds(lambda: Path(WORLD["folder"], "answers/002-other/answer.py").read_bytes()))""",
    "list a folder outside": """
breach_if(succeeds(lambda: os.listdir(WORLD["folder"])))""",
    "write a file outside": """
breach_if(succeeds(lambda: Path(WORLD["folder"], "new").write_bytes(b"x")))""",
    "read a key in the environment": """
breach_if(any(value.startswith(WORLD["half"]) for value in os.environ.values()))""",
    "read a key in the environment of any process": """
def environments():
    for process in Path("/proc").iterdir():
        try:
            yield (process / "environ").read_bytes()
        except OSError:
            pass
breach_if(any(b"=" + WORLD["half"].encode() in found for found in environments()))""",
    "connect to a server on the host": """
breach_if(succeeds(lambda: socket.create_connection(("127.0.0.1", int(WORLD["port"])), 5)))""",
    "connect to an abstract socket": """
peer = socket.socket(socket.AF_UNIX)
breach_if(succeeds(lambda: peer.connect("\\0" + WORLD["abstract"])))""",
    "connect to a socket in a folder": """
peer = socket.socket(socket.AF_UNIX)
breach_if(succeeds(lambda: peer.connect(WORLD["folder"] + "/named.socket")))""",
    "see a process outside": """
breach_if(os.path.exists("/proc/" + WORLD["victim"]))""",
    "kill a process outside": """
breach_if(succeeds(lambda: os.kill(int(WORLD["victim"]), signal.SIGKILL)))""",
    "hide memory in a memfd": """
breach_if(succeeds(lambda: os.memfd_create("hidden")))""",
    "hide memory in a segment of System V": """
segment = libc.shmget(0, 4096, 0o1600)
breach_if(segment != -1)
libc.shmctl(segment, 0, None)""",
    "hide memory that is shared and anonymous": """
breach_if(succeeds(lambda: mmap.mmap(-1, 4096)))""",
    "hide memory behind /dev/zero": """
breach_if(succeeds(lambda: mmap.mmap(os.open("/dev/zero", os.O_RDWR), 4096)))""",
    "trace a process": """
if (child := os.fork()) == 0:
    breach_if(libc.ptrace(0, 0, 0, 0) != -1)
    os._exit(0)
os.waitpid(child, 0)""",
    "change its personality": """
breach_if(libc.personality(0x0040000) != -1)""",
    "read memory with process_vm_readv": """
class Vector(ctypes.Structure):
    _fields_ = [("start", ctypes.c_void_p), ("length", ctypes.c_size_t)]
here, there = ctypes.create_string_buffer(8), ctypes.create_string_buffer(8)
vectors = [Vector(ctypes.addressof(one), 8) for one in (here, there)]
got = libc.process_vm_readv(os.getpid(), *(
    word for one in vectors for word in (ctypes.byref(one), ctypes.c_ulong(1))
), ctypes.c_ulong(0))
breach_if(got == 8)""",
    "lower what it is to be killed for": """
before = int(Path("/proc/self/oom_score_adj").read_text())
breach_if(before < 1000)""",
    "see how large the disk is": """
breach_if(os.statvfs(".").f_blocks * os.statvfs(".").f_frsize > 17 * 2**20)""",
    "make programs that run as somebody else": """
breach_if(not os.statvfs(".").f_flag & os.ST_NOSUID)""",
}


@pytest.mark.parametrize("attack", CONTAINED)
def test_what_succeeds_outside_fails_inside(attack: str, world: World) -> None:
    script = PRELUDE + CONTAINED[attack]

    inside = run(python(script, *world.words()))
    outside = run_bare(script, *world.words(), folder=world.folder)

    assert inside.output.split() == [TRIED], inside.output
    assert inside.succeeded
    assert outside.split() == [TRIED, BREACH]


# Outside these would need root, or would do harm there.
REFUSED = {
    "make a user namespace": "breach_if(libc.unshare(0x10000000) != -1)",
    "make a mount namespace": "breach_if(libc.unshare(0x00020000) != -1)",
    "join the namespaces of another process": """
breach_if(libc.setns(os.open("/proc/self/ns/net", os.O_RDONLY), 0) != -1)""",
    "mount something": 'breach_if(libc.mount(b"x", b"/tmp", b"tmpfs", 0, None) != -1)',
    "mount it writable": 'breach_if(libc.mount(None, b"/", None, 0x20, None) != -1)',
    "unmount something": 'breach_if(libc.umount2(b"/proc", 2) != -1)',
    "leave through chroot": 'breach_if(succeeds(lambda: os.chroot("/tmp")))',
    "become root": "breach_if(succeeds(lambda: os.setuid(0)) or os.geteuid() == 0)",
    "join a group": "breach_if(succeeds(lambda: os.setgroups([0])))",
    "make a device": """
breach_if(succeeds(lambda: os.mknod("disk", 0o60666, os.makedev(254, 0))))""",
    "set the clock": "breach_if(succeeds(lambda: time.clock_settime(0, time.time())))",
    "name the machine": 'breach_if(succeeds(lambda: socket.sethostname("mine")))',
    "talk to the hypervisor": "breach_if(succeeds(lambda: socket.socket(40, 1)))",
    "speak to the kernel's cryptography": "breach_if(succeeds(lambda: socket.socket(38, 5)))",
    "look at raw packets": "breach_if(succeeds(lambda: socket.socket(17, 3)))",
    "reach the network": """
breach_if(succeeds(lambda: socket.create_connection(("192.0.2.1", 80), 5)))""",
    "type into a terminal": """
import errno, fcntl, termios
try:
    fcntl.ioctl(0, termios.TIOCSTI, b"x")
    breach_if(True)
except OSError as error:
    breach_if(error.errno != errno.EPERM)""",
    "kill what keeps it": """
for process in (1, os.getppid()):
    succeeds(lambda: os.kill(process, signal.SIGKILL))
breach_if(False)""",  # it is still there to say so
    "raise its limits": """
import resource
def raised(kind):
    try:
        resource.setrlimit(kind, (resource.RLIM_INFINITY,) * 2)
        return True
    except (ValueError, OSError):
        return False
limits = (resource.RLIMIT_NPROC, resource.RLIMIT_DATA, resource.RLIMIT_FSIZE)
breach_if(any(map(raised, limits)))""",
    "keep any right": """
status = Path("/proc/self/status").read_text()
breach_if(any(int(line.split()[1], 16) for line in status.splitlines() if line[:3] == "Cap"))""",
}


@pytest.mark.parametrize("attack", REFUSED)
def test_what_only_root_may_is_refused(attack: str, world: World) -> None:
    script = PRELUDE + REFUSED[attack]

    inside = run(python(script, *world.words()))

    assert inside.output.split() == [TRIED], inside.output


WRITES = [
    *("/new", "/usr/new", "/usr/bin/env", "/etc/passwd", "/etc/new", "/dev/new", "/input/new"),
    *("/input/answer.py", "/tools/new", "/tools/tool.py", "/proc/sys/kernel/hostname"),
    *("/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/1/oom_score_adj", "/sys/x"),
    *("/dev/kmsg", "/dev/mem", "/dev/sda", "/dev/vda", "/dev/tty", "/dev/ptmx"),
]


def test_nothing_can_be_written_but_its_own_folders(tmp_path: Path) -> None:
    for name in ("answer/answer.py", "tools/tool.py"):
        (tmp_path / name).parent.mkdir(mode=0o777)
        (tmp_path / name).parent.chmod(0o777)
        (tmp_path / name).touch(0o666)
        (tmp_path / name).chmod(0o666)
    script = """
import os, sys
for path in sys.argv[1:]:
    for flags in (os.O_WRONLY | os.O_CREAT, os.O_WRONLY):
        try:
            os.close(os.open(path, flags))
            print(path)
        except OSError:
            pass
"""
    own = [f"{WORK}/new", "/tmp/new", "/dev/shm/new", f"{WORK}/answer.py", "/dev/null"]
    tools = Mount(tmp_path / "tools", "/tools")

    inside = run(python(script, *WRITES, *own, folder=tmp_path / "answer", mounts=(tools,)))

    assert sorted(set(inside.output.split())) == sorted(own)


READS = [
    *(
        str(Path.home() / ".ssh"),
        str(Path.home() / ".bashrc"),
        "/home",
        "/var",
        "/run",
        "/boot",
        "/sys",
        "/proc/kcore",
        "/proc/kmsg",
        "/dev/kmsg",
    ),
    *(
        "/proc/1/environ",
        "/proc/1/root",
        "/proc/1/fd",
        "/etc/shadow",
        "/etc/ssh",
        "/etc/machine-id",
    ),
]


def test_nothing_of_the_host_can_be_read_but_its_programs() -> None:
    script = """
import os, sys
for path in sys.argv[1:]:
    try:
        content = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(10)
        print(*([path] if content else []))
    except OSError:
        pass
"""

    inside = run(python(script, *READS, "/usr", "/etc/hosts"))

    # Where the command only seems to be another user, it may look at its keeper: at nothing.
    assert set(inside.output.split()) - {"/proc/1/root", "/proc/1/fd"} == {"/usr", "/etc/hosts"}


def test_killing_everybody_kills_only_itself(world: World) -> None:
    script = "sleep 60 & kill -9 -1; wait; echo alone"

    finished = run(shell(script))

    assert finished.output == "alone\n"
    os.kill(world.victim, 0)
