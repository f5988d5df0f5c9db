"""Rollouts: order of undoing, the cause that survives, and failing undos."""

from collections.abc import Iterator

import pytest
from rollout import Step, run


class Site:
    """Keeps what steps did to it, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.log: list[str] = []

    def step(
        self,
        name: str,
        *,
        fails: BaseException | None = None,
        undo_fails: Exception | None = None,
        result: object = None,
    ) -> Step:
        def apply() -> object:
            self.events.append(f"apply {name}")
            if fails is not None:
                raise fails
            return result

        def undo(given: object) -> None:
            assert given is result
            self.events.append(f"undo {name}")
            if undo_fails is not None:
                raise undo_fails

        return Step(name, apply, undo)


def notes_of(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))


def test_all_steps_are_applied_in_order_and_none_is_undone() -> None:
    site = Site()

    results = run([site.step("disk", result=1), site.step("net", result=None)], site.log.append)

    assert results == {"disk": 1, "net": None}
    assert site.events == ["apply disk", "apply net"]
    assert site.log == ["applied disk", "applied net"]


def test_without_steps_there_are_no_results() -> None:
    site = Site()

    assert run([], site.log.append) == {}
    assert site.log == []


def test_the_latest_step_is_undone_first_and_the_failed_one_not_at_all() -> None:
    site = Site()
    steps = [site.step("a"), site.step("b"), site.step("c", fails=OSError("full")), site.step("d")]

    with pytest.raises(OSError):
        run(steps, site.log.append)

    assert site.events == ["apply a", "apply b", "apply c", "undo b", "undo a"]
    assert site.log == ["applied a", "applied b", "undone b", "undone a"]


def test_the_caller_gets_the_very_exception_that_was_raised() -> None:
    site = Site()
    cause = LookupError("no such zone")

    with pytest.raises(LookupError) as caught:
        run([site.step("a"), site.step("b", fails=cause)], site.log.append)

    assert caught.value is cause
    assert notes_of(cause) == []


def test_each_undo_gets_the_result_of_its_own_step() -> None:
    site = Site()
    steps = [site.step(name, result=object()) for name in "abc"]

    with pytest.raises(ValueError):
        run([*steps, site.step("d", fails=ValueError())], site.log.append)

    assert site.events[-3:] == ["undo c", "undo b", "undo a"]
    assert site.log[-3:] == ["undone c", "undone b", "undone a"]


def test_a_failing_undo_stops_no_other_and_is_noted_on_the_cause() -> None:
    site = Site()
    cause = RuntimeError("power")
    steps = [
        site.step("a", undo_fails=OSError("stuck")),
        site.step("b"),
        site.step("c", undo_fails=ValueError("locked")),
        site.step("d", fails=cause),
    ]

    with pytest.raises(RuntimeError) as caught:
        run(steps, site.log.append)

    assert caught.value is cause
    assert site.events[-3:] == ["undo c", "undo b", "undo a"]
    assert site.log == ["applied a", "applied b", "applied c", "undone b"]
    assert notes_of(cause) == ["undo of c failed: locked", "undo of a failed: stuck"]


def test_a_failing_undo_has_its_own_text_even_if_steps_share_a_name() -> None:
    site = Site()
    steps = [
        site.step("a", undo_fails=OSError("first")),
        site.step("a", undo_fails=OSError("second")),
        site.step("b", fails=OSError("third")),
    ]

    with pytest.raises(OSError, match="third") as caught:
        run(steps, site.log.append)

    assert notes_of(caught.value) == ["undo of a failed: second", "undo of a failed: first"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt(), SystemExit(3), GeneratorExit()])
def test_an_interruption_is_rolled_back_too(stop: BaseException) -> None:
    site = Site()

    with pytest.raises(type(stop)) as caught:
        run([site.step("a"), site.step("b", fails=stop)], site.log.append)

    assert caught.value is stop
    assert site.events == ["apply a", "apply b", "undo a"]


def test_steps_are_taken_one_at_a_time() -> None:
    site = Site()

    def steps() -> Iterator[Step]:
        for name in ("a", "b"):
            site.events.append(f"plan {name}")
            yield site.step(name)

    run(steps(), site.log.append)

    assert site.events == ["plan a", "apply a", "plan b", "apply b"]


def test_steps_that_can_not_be_planned_are_a_failure_like_any_other() -> None:
    site = Site()
    cause = LookupError("no plan")

    def steps() -> Iterator[Step]:
        yield site.step("a")
        yield site.step("b")
        raise cause

    with pytest.raises(LookupError) as caught:
        run(steps(), site.log.append)

    assert caught.value is cause
    assert site.events[-2:] == ["undo b", "undo a"]


def test_a_step_is_undone_if_its_success_could_not_be_logged() -> None:
    site = Site()
    cause = OSError("log is full")

    def log(line: str) -> None:
        if line == "applied b":
            raise cause
        site.log.append(line)

    with pytest.raises(OSError) as caught:
        run([site.step("a"), site.step("b"), site.step("c")], log)

    assert caught.value is cause
    assert site.events == ["apply a", "apply b", "undo b", "undo a"]
    assert site.log == ["applied a", "undone b", "undone a"]


def test_the_last_of_equal_names_is_returned_and_all_of_them_are_undone() -> None:
    site = Site()
    twice = [site.step("a", result=1), site.step("a", result=2)]

    assert run(twice, site.log.append) == {"a": 2}
    with pytest.raises(OSError):
        run([*twice, site.step("b", fails=OSError())], site.log.append)
    assert site.events[-2:] == ["undo a", "undo a"]
