"""Runs steps in order; if one fails, those before it are undone, the latest first."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """Something that can be done and undone; `undo` gets what `apply` returned."""

    name: str
    apply: Callable[[], object]
    undo: Callable[[object], None]


def run(steps: Iterable[Step], log: Callable[[str], None]) -> dict[str, object]:
    """The results of all steps by name, or the exception that stopped them, after undoing."""
    applied: list[tuple[Step, object]] = []
    try:
        for step in steps:
            applied.append((step, None))
            applied[-1] = (step, step.apply())
            log(f"applied {step.name}")
    except BaseException as cause:
        _undo(applied, cause, log)
        raise
    return {step.name: result for step, result in applied}


def _undo(
    applied: list[tuple[Step, object]], cause: BaseException, log: Callable[[str], None]
) -> None:
    """Undoes what it can; what it can not is noted on the cause."""
    for step, result in reversed(applied):
        try:
            step.undo(result)
        except Exception as error:
            cause.add_note(f"undo of {step.name} failed: {error}")
        else:
            log(f"undone {step.name}")
