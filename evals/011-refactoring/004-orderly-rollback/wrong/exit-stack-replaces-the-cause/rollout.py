"""Runs steps in order; if one fails, those before it are undone, the latest first."""

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """Something that can be done and undone; `undo` gets what `apply` returned."""

    name: str
    apply: Callable[[], object]
    undo: Callable[[object], None]


def run(steps: Iterable[Step], log: Callable[[str], None]) -> dict[str, object]:
    """The results of all steps by name; on failure the stack undoes them in reverse."""
    results: dict[str, object] = {}
    with ExitStack() as stack:
        for step in steps:
            result = step.apply()
            stack.callback(_undo, step, result, log)
            log(f"applied {step.name}")
            results[step.name] = result
        stack.pop_all()
    return results


def _undo(step: Step, result: object, log: Callable[[str], None]) -> None:
    try:
        step.undo(result)
    except Exception as error:
        error.add_note(f"undo of {step.name} failed: {error}")
        raise
    log(f"undone {step.name}")
