"""The filter for system calls: what it says when asked, here and for machines we are not on."""

import errno
import json
import platform
import struct
from collections.abc import Sequence

import pytest

from eval_pipeline.suites.coding.sandbox.seccomp import filter_program, forbidden_calls
from eval_pipeline_tests.sandboxes import python, run

ALLOW, FAIL = 0x7FFF0000, 0x00050000
AUDIT = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
NUMBERS = {
    "x86_64": {
        "setsockopt": 54,
        "read": 0,
        "clone": 56,
        "ioctl": 16,
        "mmap": 9,
        "socket": 41,
        "socketpair": 53,
    }
    | {"personality": 135, "mount": 165, "ptrace": 101, "execve": 59, "futex": 202},
    "aarch64": {"read": 63, "clone": 220, "ioctl": 29, "mmap": 222, "socket": 198}
    | {"socketpair": 199, "personality": 92, "mount": 40, "ptrace": 117, "execve": 221}
    | {"futex": 98, "setsockopt": 208},
}


def answer(machine: str, number: int, arguments: Sequence[int], audit: int | None = None) -> int:
    """What the kernel would answer: the program run as the kernel runs it."""
    code = list(struct.iter_unpack("=HBBI", filter_program(machine)))
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, AUDIT[machine] if audit is None else audit, 0, *padded)
    at, value = 0, 0
    while True:
        operation, if_true, if_false, operand = code[at]
        at += 1
        match operation:
            case 0x20:
                (value,) = struct.unpack_from("=I", data, operand)
            case 0x54:
                value &= operand
            case 0x06:
                return int(operand)
            case 0x15 | 0x25 | 0x45:
                holds = {0x15: value == operand, 0x25: value > operand, 0x45: value & operand}
                at += if_true if holds[operation] else if_false
            case _:
                raise AssertionError(f"no such operation: {operation:#x}")


@pytest.mark.parametrize("machine", AUDIT)
@pytest.mark.parametrize(
    ("call", "arguments", "error"),
    [
        ("read", (0, 0, 0), None),
        ("execve", (1, 2, 3), None),
        ("futex", (0xFFFFFFFFFFFF, 0, 0), None),
        ("mount", (), errno.EPERM),
        ("ptrace", (), errno.EPERM),
        ("clone", (0x003D0F00,), None),
        ("clone", (0x11,), None),
        *(("clone", (flag | 0x11,), errno.EPERM) for flag in (0x20000, 0x10000000, 0x40000000)),
        ("ioctl", (0, 0x5401), None),
        ("ioctl", (0, 0x5412), errno.EPERM),
        ("ioctl", (0, 0xFFFFFFFF00005412), errno.EPERM),
        ("ioctl", (0, 0x541C), errno.EPERM),
        ("mmap", (0, 4096, 3, 0x22), None),
        ("mmap", (0, 4096, 3, 0x01), None),
        ("mmap", (0, 4096, 3, 0x21), errno.ENOMEM),
        ("mmap", (0, 4096, 3, 0x40023), errno.ENOMEM),
        ("personality", (0xFFFFFFFF,), None),
        ("personality", (0x40000,), errno.EPERM),
        *(("socket", (family, 1), None) for family in (1, 2, 10, 16)),
        *(("socket", (family, 1), errno.EAFNOSUPPORT) for family in (0, 3, 17, 31, 38, 40, 44)),
        ("socket", (16, 3, 12), errno.EAFNOSUPPORT),
        *(("setsockopt", (3, 1, option), 0) for option in (7, 8, 32, 33)),
        ("setsockopt", (3, 1, 9), None),
        ("setsockopt", (3, 6, 7), None),
        ("socketpair", (1, 1), None),
        ("socketpair", (2, 1), errno.EAFNOSUPPORT),
    ],
)
def test_calls_are_allowed_or_fail(
    machine: str, call: str, arguments: tuple[int, ...], error: int | None
) -> None:
    said = answer(machine, NUMBERS[machine][call], arguments)

    assert said == (ALLOW if error is None else FAIL | error)


@pytest.mark.parametrize("machine", AUDIT)
def test_calls_of_another_kind_of_machine_and_new_ones_fail(machine: str) -> None:
    foreign = answer(machine, 0, (), audit=0x40000003)
    x32 = answer(machine, 0x40000000, ())
    new = answer(machine, 600, ())

    assert foreign == FAIL | errno.EPERM
    assert x32 == new == FAIL | errno.ENOSYS


def test_there_is_no_filter_for_a_machine_nobody_has_looked_at() -> None:
    with pytest.raises(KeyError):
        filter_program("sparc")


def test_the_kernel_refuses_every_forbidden_call_inside() -> None:
    calls = forbidden_calls(platform.machine())
    script = """
import ctypes, json, sys
libc = ctypes.CDLL(None, use_errno=True)
def error_of(number):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
    return ctypes.get_errno()
print(json.dumps({name: error_of(number) for name, number in json.loads(sys.argv[1]).items()}))
"""
    numbers = json.dumps({name: number for name, (number, _) in calls.items()})

    finished = run(python(script, numbers))

    assert json.loads(finished.output) == {name: error for name, (_, error) in calls.items()}
