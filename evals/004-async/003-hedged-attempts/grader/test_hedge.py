"""What a hedged request must do, on an event loop whose clock jumps instead of waiting."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hedge import hedge

NEVER = 1e9


class JumpingLoop(asyncio.SelectorEventLoop):
    """When there is nothing to do, its clock jumps to the next thing that is due."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def time(self) -> float:
        return self.now

    def _run_once(self) -> None:
        if not self._ready:
            due = [timer.when() for timer in self._scheduled if not timer.cancelled()]
            self.now = max(self.now, min(due, default=self.now))
        super()._run_once()


def run(scenario: Coroutine[Any, Any, Any]) -> Any:
    """Runs a scenario, which fails rather than hangs."""
    with asyncio.Runner(loop_factory=JumpingLoop) as runner:
        return runner.run(asyncio.wait_for(scenario, 10_000))


class Servers:
    """Attempts that remember when they started, and whether they cleaned up."""

    def __init__(self) -> None:
        self.started: dict[str, float] = {}
        self.cleaned: list[str] = []

    def attempt(
        self,
        name: str,
        *,
        seconds: float = 0.0,
        error: Exception | None = None,
        cleanup: float = 1.0,
        cleanup_error: Exception | None = None,
    ) -> Callable[[], Coroutine[Any, Any, str]]:
        async def ask() -> str:
            self.started[name] = asyncio.get_running_loop().time()
            try:
                await asyncio.sleep(seconds)
            except asyncio.CancelledError:
                await asyncio.sleep(cleanup)
                self.cleaned.append(name)
                raise cleanup_error or asyncio.CancelledError from None
            if error is not None:
                raise error
            return name

        return ask


def test_a_quick_first_attempt_is_the_only_one() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [servers.attempt("a", seconds=9), servers.attempt("b")]
        assert await hedge(attempts, delay=10) == "a"
        assert servers.started == {"a": 0}

    run(scenario())


def test_none_is_a_success() -> None:
    async def nothing() -> None:
        return None

    async def scenario() -> None:
        servers = Servers()
        assert await hedge([nothing, servers.attempt("b")], delay=10) is None
        assert servers.started == {}

    run(scenario())


def test_slow_attempts_are_joined_by_the_next_after_each_delay() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [
            servers.attempt("a", seconds=NEVER),
            servers.attempt("b", seconds=NEVER),
            servers.attempt("c", seconds=5),
            servers.attempt("d"),
        ]
        assert await hedge(attempts, delay=10) == "c"
        assert servers.started == {"a": 0, "b": 10, "c": 20}

    run(scenario())


def test_a_slow_attempt_can_still_win_after_the_next_has_started() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [servers.attempt("a", seconds=14), servers.attempt("b", seconds=NEVER)]
        assert await hedge(attempts, delay=10) == "a"
        assert servers.started == {"a": 0, "b": 10}
        assert asyncio.get_running_loop().time() == 15

    run(scenario())


def test_a_failure_starts_the_next_attempt_without_waiting() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [
            servers.attempt("a", error=OSError("a")),
            servers.attempt("b", seconds=2, error=TimeoutError("b")),
            servers.attempt("c"),
        ]
        assert await hedge(attempts, delay=10) == "c"
        assert servers.started == {"a": 0, "b": 0, "c": 2}

    run(scenario())


def test_the_failure_of_an_attempt_that_is_not_the_latest_starts_the_next_too() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [
            servers.attempt("a", seconds=13, error=OSError("a")),
            servers.attempt("b", seconds=NEVER),
            servers.attempt("c"),
        ]
        assert await hedge(attempts, delay=10) == "c"
        assert servers.started == {"a": 0, "b": 10, "c": 13}

    run(scenario())


def test_the_delay_is_counted_from_the_latest_start() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [
            servers.attempt("a", seconds=4, error=OSError("a")),
            servers.attempt("b", seconds=NEVER),
            servers.attempt("c"),
        ]
        assert await hedge(attempts, delay=10) == "c"
        assert servers.started == {"a": 0, "b": 4, "c": 14}

    run(scenario())


def test_when_all_fail_the_group_holds_their_errors_in_the_order_of_attempts() -> None:
    async def scenario() -> None:
        servers = Servers()
        errors = [OSError("a"), TimeoutError("b"), KeyError("c")]
        attempts = [
            servers.attempt("a", seconds=50, error=errors[0]),
            servers.attempt("b", seconds=1, error=errors[1]),
            servers.attempt("c", seconds=1, error=errors[2]),
        ]
        with pytest.raises(ExceptionGroup) as caught:
            await hedge(attempts, delay=10)
        assert list(caught.value.exceptions) == errors
        assert asyncio.get_running_loop().time() == 50

    run(scenario())


def test_losers_have_cleaned_up_before_the_result_is_returned() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [
            servers.attempt("a", seconds=NEVER, cleanup=3),
            servers.attempt("b", seconds=NEVER, cleanup=3),
            servers.attempt("c"),
        ]
        assert await hedge(attempts, delay=10) == "c"
        assert sorted(servers.cleaned) == ["a", "b"]
        assert asyncio.get_running_loop().time() == 23

    run(scenario())


def test_what_a_loser_raises_while_being_cancelled_is_ignored() -> None:
    async def scenario() -> None:
        servers = Servers()
        broken = RuntimeError("broken cleanup")
        attempts = [
            servers.attempt("a", seconds=NEVER, cleanup_error=broken),
            servers.attempt("b"),
            servers.attempt("c"),
        ]
        assert await hedge(attempts, delay=10) == "b"
        assert servers.cleaned == ["a"]
        assert "c" not in servers.started

    run(scenario())


def test_cancelling_it_cancels_the_attempts_and_waits_for_them() -> None:
    async def scenario() -> None:
        servers = Servers()
        attempts = [servers.attempt(name, seconds=NEVER) for name in "abc"]
        task = asyncio.create_task(hedge(attempts, delay=10))
        await asyncio.sleep(15)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sorted(servers.cleaned) == ["a", "b"]
        assert servers.started == {"a": 0, "b": 10}

    run(scenario())


def test_without_attempts_it_is_a_value_error() -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError):
            await hedge([], delay=10)

    run(scenario())
