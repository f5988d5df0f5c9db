"""What a caller may rely on when it runs a program that misbehaves."""

import time

import pytest
from commands import Result, run

# Nothing honest takes this long; what is left behind would.
LEFT_BEHIND = "sleep 4"
PATIENCE = 3.0

GONE = """
for attempt in $(seq 100); do
    state=$(cut -d ' ' -f 3 /proc/$0/stat 2>/dev/null)
    if [ -z "$state" ] || [ "$state" = Z ] || [ "$state" = X ]; then exit 0; fi
    sleep 0.01
done
exit 1
"""


def sh(script: str, *, stdin: bytes = b"", seconds: float = 5.0, max_output: int = 65536) -> Result:
    return run(["sh", "-c", script], stdin=stdin, seconds=seconds, max_output=max_output)


def is_gone(pid: str) -> bool:
    """Whether a process has ended, seen from where programs run."""
    return run(["sh", "-c", GONE, pid], seconds=5.0).exit_code == 0


def test_output_and_errors_come_as_one_stream_in_order() -> None:
    result = sh("echo one; echo two >&2; echo three; exit 7")
    assert isinstance(result, Result)
    assert result.output == b"one\ntwo\nthree\n"
    assert (result.exit_code, result.timed_out, result.truncated) == (7, False, False)


def test_arguments_are_not_read_by_a_shell() -> None:
    result = run(["printf", "%s|", "a b", "$HOME", "*"], seconds=5.0)
    assert result.output == b"a b|$HOME|*|"


def test_a_signal_is_a_negative_exit_code() -> None:
    result = sh("kill -TERM $$")
    assert (result.exit_code, result.timed_out) == (-15, False)


def test_a_program_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        run(["no-such-program-anywhere"], seconds=5.0)


def test_large_input_goes_through_a_program_that_writes_while_it_reads() -> None:
    data = bytes(range(256)) * 2048
    result = run(["cat"], stdin=data, seconds=5.0, max_output=len(data))
    assert result.output == data
    assert (result.exit_code, result.truncated) == (0, False)


@pytest.mark.parametrize(("script", "output"), [("exit 3", b""), ("head -c 5; exit 3", b"xxxxx")])
def test_input_that_nobody_reads_does_no_harm(script: str, output: bytes) -> None:
    result = sh(script, stdin=b"x" * 1_000_000)
    assert (result.exit_code, result.output) == (3, output)


def test_without_input_a_program_sees_the_end_of_file() -> None:
    assert sh("cat; echo done").output == b"done\n"


def test_output_beyond_the_limit_is_thrown_away_without_holding_up_the_program() -> None:
    result = sh("seq 100000; exit 5", max_output=1000)
    assert result.output == "".join(f"{n}\n" for n in range(1, 1001)).encode()[:1000]
    assert (result.exit_code, result.truncated, result.timed_out) == (5, True, False)


def test_output_of_exactly_the_limit_is_not_truncated() -> None:
    result = sh("printf 12345", max_output=5)
    assert (result.output, result.truncated) == (b"12345", False)


def test_a_program_that_takes_too_long_is_stopped() -> None:
    start = time.monotonic()
    result = sh(f"exec {LEFT_BEHIND}", seconds=0.05)
    assert time.monotonic() - start < PATIENCE
    assert (result.exit_code, result.timed_out, result.output) == (None, True, b"")


def test_what_was_written_before_the_time_was_up_is_kept() -> None:
    # A busy machine may need longer to start a program, so it is given more time if need be.
    for seconds in (0.1, 0.4, 1.6):
        result = sh(f"echo early; {LEFT_BEHIND}", seconds=seconds)
        assert (result.exit_code, result.timed_out) == (None, True)
        if result.output:
            break
    assert result.output == b"early\n"


def test_a_program_that_ends_does_not_leave_its_children_behind() -> None:
    start = time.monotonic()
    result = sh(f"{LEFT_BEHIND} & echo $!; exit 6")
    assert time.monotonic() - start < PATIENCE
    assert (result.exit_code, result.timed_out) == (6, False)
    assert is_gone(result.output.decode().strip())


def test_a_child_without_a_share_in_the_output_is_not_left_behind_either() -> None:
    result = sh(f"{LEFT_BEHIND} </dev/null >/dev/null 2>&1 & echo $!")
    assert result.exit_code == 0
    assert is_gone(result.output.decode().strip())


def test_a_program_that_takes_too_long_is_stopped_with_its_children() -> None:
    for seconds in (0.1, 0.4, 1.6):
        start = time.monotonic()
        result = sh(f"{LEFT_BEHIND} & echo $!; wait", seconds=seconds)
        assert time.monotonic() - start < PATIENCE
        assert (result.exit_code, result.timed_out) == (None, True)
        if result.output:
            break
    assert is_gone(result.output.decode().strip())
