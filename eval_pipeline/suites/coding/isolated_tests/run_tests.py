"""Runs a task's tests: beside the answer, or apart from it over likenesses of its modules."""

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence

import pytest

from eval_pipeline.suites.coding.isolated_tests.modules import Modules
from eval_pipeline.suites.coding.isolated_tests.proxies import AnswerGone
from eval_pipeline.suites.coding.isolated_tests.pytest_plugin import Reporting, Say, reporter
from eval_pipeline.suites.coding.isolated_tests.wire import Frames, channel_of

BROKEN = 9
"""How it ends if there was nothing to test."""
_OPTIONS = (
    "--noconftest --import-mode=importlib -p no:cacheprovider -p no:doctest -p no:junitxml "
    "-p no:pastebin -p no:legacypath -p no:stepwise -p no:setuponly -p no:setupplan "
    "-p no:debugging --color=no --tb=short -q"
)


def apart(frames: Frames, interface: Mapping[str, Sequence[str]]) -> str | None:
    """Likenesses of the answer's modules where tests look for them, or why there are none."""
    modules = Modules(frames, interface)
    try:
        first = modules.receive()
        if "broken" in first:
            return str(first["broken"])
        modules.install()
    except (AnswerGone, Exception) as gone:  # noqa: BLE001  (all that is read is the answer's word)
        return f"The answer's process could not be used: {gone}"
    return None


def run(say: Say, canaries: Sequence[str], *, guarded: bool) -> None:
    """All tests, by our configuration; afterwards nobody gets a chance to do any more."""
    config, folder = sys.argv[1:3]
    del sys.argv[1:]
    places = ["-c", config, "--rootdir", folder, f"--basetemp={tempfile.mkdtemp()}/tests", folder]
    plugin = Reporting(say, canaries, guarded=guarded)
    leave = os._exit
    say("begin")
    code = int(pytest.main([*_OPTIONS.split(), *places], plugins=[plugin]))
    say("end", code)
    sys.stdout.flush()
    sys.stderr.flush()
    leave(code)


def main() -> None:
    """The key comes first, before there is any code around that could see it."""
    channel = channel_of(os.environ)
    frames = Frames(channel)
    _, told = frames.receive_kind()
    say = reporter(channel, bytes.fromhex(told["key"]))
    interface, canaries = told["interface"], told["canaries"]
    del told
    if interface is None:
        sys.path.insert(0, os.getcwd())  # noqa: PTH109
    elif reason := apart(frames, interface):
        say("broken", reason)
        os._exit(BROKEN)
    del frames, channel
    sys.dont_write_bytecode = True
    run(say, canaries, guarded=interface is None)


if __name__ == "__main__":
    main()
