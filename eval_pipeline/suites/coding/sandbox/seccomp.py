"""The system calls that code in the sandbox may not make, as a filter for the kernel.

A namespace does not reach everything: memory may hide in segments that belong to no process, vsock
knows no network namespace, and much of the kernel is reachable only for those who mean harm. The
filter is assembled here and not by a library, which would have to be the same on every machine.
"""

import csv
import errno
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

_LOAD, _AND, _EQUAL, _GREATER, _ANY, _RETURN = 0x20, 0x54, 0x15, 0x25, 0x45, 0x06
_ALLOWED, _FAIL = (_RETURN, 0, 0, 0x7FFF0000), 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16
_NEWEST = 462
"""What came into Linux later has no use here yet, and nobody has thought about its harm."""

_CALLS = Path(__file__).with_suffix(".csv").read_text("utf-8").splitlines()
"""Forbidden calls with their error and their number on each machine, if there is such a call.

Programs that know those with ENOSYS also know what to do on a kernel without them.
"""
_CLONE, _IOCTL, _MMAP = (56, 220), (16, 29), (9, 222)
_PERSONALITY, _SOCKET, _SOCKETPAIR, _SETSOCKOPT = (135, 92), (41, 198), (53, 199), (54, 208)
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_INPUT = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX: words put into somebody's terminal
_SHARED_AND_ANONYMOUS = 0x21
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_OF_SOCKETS, _BUFFER_SIZES = 1, (7, 8, 32, 33)  # SO_SNDBUF, SO_RCVBUF and both with force
_DONE = 0
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""For each machine its number in audit records, and its place in pairs of call numbers."""
_Step = tuple[int, int, int, int]
_Code = list[_Step]


def filter_program(machine: str) -> bytes:
    """The filter for `platform.machine()`, as bubblewrap reads it; KeyError if there is none."""
    audit, column = _MACHINES[machine]
    code: _Code = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, audit),
        _fail(errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
        (_GREATER, 0, 1, _NEWEST),
        _fail(errno.ENOSYS),
    ]
    for number, error in forbidden_calls(machine).values():
        code += [(_EQUAL, 0, 1, number), _fail(error)]
    for numbers, body in _looked_into():
        code += [(_EQUAL, 0, len(body), numbers[column]), *body]
    code.append(_ALLOWED)
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def forbidden_calls(machine: str) -> Mapping[str, tuple[int, int]]:
    """Number and error of every call that fails whatever it is called with, by name."""
    return {
        row["call"]: (int(row[machine]), getattr(errno, row["error"]))
        for row in csv.DictReader(_CALLS)
        if row[machine]
    }


def _looked_into() -> Iterator[tuple[tuple[int, int], _Code]]:
    """Calls that depend on what they are called with; every body ends in a return."""
    yield _CLONE, _unless_any(0, _NEW_NAMESPACES, errno.EPERM)
    yield _IOCTL, _if_one(1, _TERMINAL_INPUT, _fail(errno.EPERM), _ALLOWED)
    # Such memory stays when it is no longer mapped, and then belongs to nobody who is watched.
    yield _MMAP, _unless_all(3, _SHARED_AND_ANONYMOUS, errno.ENOMEM)
    yield _PERSONALITY, _if_one(0, (0, 0xFFFFFFFF), _ALLOWED, _fail(errno.EPERM))
    yield _SOCKET, _sockets()
    # Ignored without an error: what waits in a larger buffer is in no process that is watched.
    yield _SETSOCKOPT, _buffers()
    yield _SOCKETPAIR, _if_one(0, (_UNIX,), _ALLOWED, _fail(errno.EAFNOSUPPORT))


def _sockets() -> _Code:
    """The usual families, and of the kernel's own only what lists network interfaces."""
    refused = _fail(errno.EAFNOSUPPORT)
    usual = _if_one(0, (_UNIX, _INET, _INET6), _ALLOWED, refused)[:-1]
    listing: _Code = [_argument(2), (_EQUAL, 0, 1, 0), _ALLOWED]
    return [*usual, (_EQUAL, 0, len(listing), _NETLINK), *listing, refused]


def _buffers() -> _Code:
    elsewhere: _Code = [_argument(1), (_EQUAL, 1, 0, _OF_SOCKETS), _ALLOWED]
    return [*elsewhere, *_if_one(2, _BUFFER_SIZES, _fail(_DONE), _ALLOWED)]


def _unless_any(argument: int, bits: int, error: int) -> _Code:
    return [_argument(argument), (_ANY, 0, 1, bits), _fail(error), _ALLOWED]


def _unless_all(argument: int, bits: int, error: int) -> _Code:
    tests: _Code = [(_AND, 0, 0, bits), (_EQUAL, 0, 1, bits)]
    return [_argument(argument), *tests, _fail(error), _ALLOWED]


def _if_one(argument: int, values: Sequence[int], then: _Step, otherwise: _Step) -> _Code:
    tests = [step for value in values for step in ((_EQUAL, 0, 1, value), then)]
    return [_argument(argument), *tests, otherwise]


def _argument(position: int) -> _Step:
    """The lower half: of these arguments the kernel looks at no more."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * position)


def _fail(error: int) -> _Step:
    return (_RETURN, 0, 0, _FAIL | error)
