"""The system calls that code in the sandbox may not make, as a filter for the kernel.

A namespace does not reach everything: memory may hide in segments that belong to no process, vsock
knows no network namespace, and much of the kernel is reachable only for those who mean harm. The
filter is assembled here and not by a library, which would have to be the same on every machine.
"""

import errno
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

_LOAD, _AND, _EQUAL, _GREATER, _ANY, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
_ALLOW, _FAIL = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_NEWEST = 462
"""What came into Linux later has no use here yet, and nobody has thought about its harm."""

# Numbers on x86_64 and on aarch64; None where there is no such call.
_FORBIDDEN: Mapping[int, Mapping[str, tuple[int, int | None]]] = {
    errno.EPERM: {
        "acct": (163, 89),
        "add_key": (248, 217),
        "adjtimex": (159, 171),
        "bpf": (321, 280),
        "chroot": (161, 51),
        "clock_adjtime": (305, 266),
        "clock_settime": (227, 112),
        "delete_module": (176, 106),
        "fanotify_init": (300, 262),
        "finit_module": (313, 273),
        "fsconfig": (431, 431),
        "fsmount": (432, 432),
        "fsopen": (430, 430),
        "fspick": (433, 433),
        "init_module": (175, 105),
        "ioperm": (173, None),
        "iopl": (172, None),
        "kcmp": (312, 272),
        "kexec_file_load": (320, 294),
        "kexec_load": (246, 104),
        "keyctl": (250, 219),
        "lookup_dcookie": (212, 18),
        "mbind": (237, 235),
        "migrate_pages": (256, 238),
        "modify_ldt": (154, None),
        "mount": (165, 40),
        "mount_setattr": (442, 442),
        "move_mount": (429, 429),
        "move_pages": (279, 239),
        "mq_open": (240, 180),
        "msgget": (68, 186),
        "name_to_handle_at": (303, 264),
        "open_by_handle_at": (304, 265),
        "open_tree": (428, 428),
        "perf_event_open": (298, 241),
        "pidfd_getfd": (438, 438),
        "pivot_root": (155, 41),
        "process_madvise": (440, 440),
        "process_vm_readv": (310, 270),
        "process_vm_writev": (311, 271),
        "ptrace": (101, 117),
        "quotactl": (179, 60),
        "quotactl_fd": (443, 443),
        "reboot": (169, 142),
        "request_key": (249, 218),
        "semget": (64, 190),
        "set_mempolicy": (238, 237),
        "setdomainname": (171, 162),
        "sethostname": (170, 161),
        "setns": (308, 268),
        "settimeofday": (164, 170),
        "shmat": (30, 196),
        "shmget": (29, 194),
        "swapoff": (168, 225),
        "swapon": (167, 224),
        "syslog": (103, 116),
        "umount2": (166, 39),
        "unshare": (272, 97),
        "userfaultfd": (323, 282),
        "vhangup": (153, 58),
    },
    # Programs that know these also know what to do on a kernel without them.
    errno.ENOSYS: {
        "clone3": (435, 435),
        "io_uring_enter": (426, 426),
        "io_uring_register": (427, 427),
        "io_uring_setup": (425, 425),
        "memfd_create": (319, 279),
        "memfd_secret": (447, 447),
    },
}
_CLONE, _IOCTL, _MMAP = (56, 220), (16, 29), (9, 222)
_PERSONALITY, _SOCKET, _SOCKETPAIR, _SETSOCKOPT = (135, 92), (41, 198), (53, 199), (54, 208)
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: words put into somebody's terminal
_SHARED_AND_ANONYMOUS = 0x21
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_OF_SOCKETS, _BUFFER_SIZES = 1, (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF and both with force
_DONE = 0


@dataclass(frozen=True)
class _Machine:
    audit: int
    column: int


_MACHINES = {"x86_64": _Machine(0xC000003E, 0), "aarch64": _Machine(0xC00000B7, 1)}

_Code = list[tuple[int, int, int, int]]


def filter_program(machine: str) -> bytes:
    """The filter for `platform.machine()`, as bubblewrap reads it; KeyError if there is none."""
    known = _MACHINES[machine]
    code: _Code = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, known.audit),
        _fail(errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, _NEWEST),
        _fail(errno.ENOSYS),
    ]
    for number, error in forbidden_calls(machine).values():
        code += [(_EQUAL, 0, 1, number), _fail(error)]
    for numbers, body in _looked_into():
        code += [(_EQUAL, 0, len(body), numbers[known.column]), *body]
    code.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def forbidden_calls(machine: str) -> Mapping[str, tuple[int, int]]:
    """Number and error of every call that fails whatever it is called with, by name."""
    column = _MACHINES[machine].column
    return {
        name: (number, error)
        for error, calls in _FORBIDDEN.items()
        for name, numbers in calls.items()
        if (number := numbers[column]) is not None
    }


def _looked_into() -> Iterator[tuple[tuple[int, int], _Code]]:
    """Calls that depend on what they are called with; every body ends in a return."""
    yield _CLONE, _unless_any(0, _NEW_NAMESPACES, errno.EPERM)
    yield _IOCTL, _unless_one(1, _TERMINAL_INPUT, errno.EPERM)
    # Such memory stays when it is no longer mapped, and then belongs to nobody who is watched.
    yield _MMAP, _unless_all(3, _SHARED_AND_ANONYMOUS, errno.ENOMEM)
    yield _PERSONALITY, _only(0, (0, 0xFFFFFFFF), errno.EPERM)
    yield _SOCKET, _sockets()
    # Ignored without an error: what waits in a larger buffer is in no process that is watched.
    yield _SETSOCKOPT, _buffers()
    yield _SOCKETPAIR, _only(0, (_UNIX,), errno.EAFNOSUPPORT)


def _sockets() -> _Code:
    """The usual families, and of the kernel's own only what lists network interfaces."""
    *usual, refused = _only(0, (_UNIX, _INET, _INET6), errno.EAFNOSUPPORT)
    listing: _Code = [_argument(2), (_EQUAL, 0, 1, 0), (_RETURN, 0, 0, _ALLOW)]
    return [*usual, (_EQUAL, 0, len(listing), _NETLINK), *listing, refused]


def _buffers() -> _Code:
    elsewhere: _Code = [_argument(1), (_EQUAL, 1, 0, _OF_SOCKETS), (_RETURN, 0, 0, _ALLOW)]
    return [*elsewhere, *_unless_one(2, _BUFFER_SIZES, _DONE)]


def _unless_any(argument: int, bits: int, error: int) -> _Code:
    return [_argument(argument), (_ANY, 0, 1, bits), _fail(error), (_RETURN, 0, 0, _ALLOW)]


def _unless_all(argument: int, bits: int, error: int) -> _Code:
    return [
        _argument(argument),
        (_AND, 0, 0, bits),
        (_EQUAL, 0, 1, bits),
        _fail(error),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _unless_one(argument: int, values: Sequence[int], error: int) -> _Code:
    tests: _Code = []
    for value in values:
        tests += [(_EQUAL, 0, 1, value), _fail(error)]
    return [_argument(argument), *tests, (_RETURN, 0, 0, _ALLOW)]


def _only(argument: int, values: Sequence[int], error: int) -> _Code:
    tests: _Code = []
    for value in values:
        tests += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [_argument(argument), *tests, _fail(error)]


def _argument(position: int) -> tuple[int, int, int, int]:
    """The lower half: of these arguments the kernel looks at no more."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * position)


def _fail(error: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _FAIL | error)
