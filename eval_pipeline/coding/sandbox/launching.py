"""The few lines of shell between a sandbox and the command in it: files in, limits on, files out.

They say on standard error what goes wrong, then that the command is about to start, and in the end
they hand over the collected files there: nothing the command prints is ever mistaken for that.
"""

import shlex
from collections.abc import Iterable, Mapping

from eval_pipeline.coding.sandbox.collecting import LARGEST_FILE, MOST_FILES, named
from eval_pipeline.coding.sandbox.sandbox import Command, Limits

READY = b"the command starts\n"
SHELL = "/bin/sh"
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"
# The command may have been given a search path on which there is nothing.
_TOOL = "PATH=/usr/bin:/bin"
OPEN_FILES = 1024
# Bubblewrap's, which count as well where the command only seems to be another user.
_OWN_PROCESSES = 2


def environment(command: Command) -> Mapping[str, str]:
    """Every variable the command finds: what it was given, and what any program needs."""
    channel = command.channel
    given = {"PATH": SEARCH_PATH, "HOME": "/tmp", "LANG": "C.UTF-8", **command.env}  # noqa: S108
    return given if channel is None else {**given, "EVALS_CHANNEL": str(channel.fileno())}


def copying(source: str, target: str) -> str:
    """Copies a folder; links stay links."""
    return f"{_TOOL} cp -R -P {shlex.quote(source)}/. {shlex.quote(target)} || exit 1\n"


def as_user(uid: int, first: str) -> str:
    """Does the `first` lines as a user that nobody else is, and goes on as that user, for good.

    Those lines may read what only root may; `$0` is the script to go on with.
    """
    become = f"/usr/bin/setpriv --reuid={uid} --regid={uid} --clear-groups"
    reading = "--inh-caps=-all,+dac_read_search --ambient-caps=-all,+dac_read_search"
    nothing = "--inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs"
    files = f"{become} {reading} -- {SHELL} -c {shlex.quote(first)} || exit 1\n" if first else ""
    return f'{files}exec {become} {nothing} -- {SHELL} -c "$0" sh "$@"\n'


def starting(command: Command, *, processes: bool = True) -> str:
    """Sets the limits of a process, says that it is about to, and runs what follows as `$@`."""
    script = _limits(command.limits, processes=processes) + (
        'command -v -- "$1" >/dev/null || { echo "There is no program $1 here." >&2; exit 1; }\n'
        f"printf '{READY.decode().strip()}\\n' >&2\n"
    )
    if not command.collect:
        return script + 'exec "$@" 2>&1\n'
    return script + (
        'exec 3>&2 2>&1\n"$@" 3>&-\ncode=$?\n' + _handing_over(command.collect) + "exit $code\n"
    )


def _limits(limits: Limits, *, processes: bool) -> str:
    """Of one process each; those of all together are watched from outside.

    What may be mapped is twice what may be used, so that a command which uses too much is ended
    for that, and not by whatever it does when an allocation fails.
    """
    lines = [
        "umask 022",
        "ulimit -c 0",
        f"ulimit -n {OPEN_FILES}",
        f"ulimit -f {limits.disk_mb * 2048}",
        f"ulimit -d {limits.memory_mb * 2048}",
    ]
    if processes:  # which dash calls p and bash u
        most = limits.processes + _OWN_PROCESSES
        lines.append(f"ulimit -p {most} 2>/dev/null || ulimit -u {most}")
    # If the machine runs out of memory after all, then this is to go, and nothing else.
    adjust = "{ echo 1000 > /proc/self/oom_score_adj; } 2>/dev/null\n"
    return "".join(f"{line} || exit 1\n" for line in lines) + adjust


def _handing_over(paths: Iterable[str]) -> str:
    """Finds the files without following a link in any part of their path, and packs them."""
    either = " -o ".join(
        f"-path {shlex.quote(path)} -o -path {shlex.quote(path + '/*')}" for path in named(paths)
    )
    return (
        f"PATH=/usr/bin:/bin\n"
        f"find . -xdev -type f -size -{LARGEST_FILE}c \\( {either} \\) -print0 2>/dev/null"
        f" | head -z -n {MOST_FILES} | tar --create --file=- --null --no-recursion"
        " --verbatim-files-from --hard-dereference --files-from=- >&3 2>/dev/null\n"
    )
