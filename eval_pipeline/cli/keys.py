"""Questions that are answered by keys: pick one line, tick some, type a little."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from eval_pipeline.cli.choices import Line

if TYPE_CHECKING:  # loading these takes a moment that `evals --help` does without
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from questionary import Question
    from questionary.prompts.common import InquirerControl

TICK = "(Space ticks, typing filters, Enter; Esc: back)"


def pick(question: str, lines: Sequence[Line], *, back: str = "back") -> str | None:
    """The value of the line that was picked; None says to go back, or what Escape means here."""
    import questionary

    choices = [questionary.Choice(line.title, line.value) for line in lines]
    asked = questionary.select(question, choices, instruction=f"(arrows, Enter; Esc: {back})")
    picked: str | None = _answer(asked, _bindings(asked))
    return picked


def tick(question: str, lines: Sequence[Line]) -> list[str] | None:
    """The values of those that were ticked, or of the one that Enter was pressed on."""
    import questionary

    choices = [questionary.Choice(line.title, line.value) for line in lines]
    asked = questionary.checkbox(
        question, choices, instruction=TICK, use_search_filter=True, use_jk_keys=False
    )
    bindings, shown = _bindings(asked), _list_in(asked)

    @bindings.add("enter", eager=True)
    def take(event: "KeyPressEvent") -> None:
        fitting = shown.filtered_choices
        # With a filter that nothing fits, all lines are shown; none of them is meant.
        if shown.search_filter and not shown.found_in_search:
            return
        if not shown.selected_options:
            shown.selected_options = [fitting[shown.pointed_at].value]
        shown.is_answered = True
        event.app.exit(result=[choice.value for choice in shown.get_selected_values()])

    ticked: list[str] | None = _answer(asked, bindings)
    return ticked


def type_in(question: str, check: Callable[[str], bool | str]) -> str | None:
    """What was typed, if the check lets it pass; None says to go back."""
    import questionary
    from prompt_toolkit.key_binding import KeyBindings

    bindings = KeyBindings()
    asked = questionary.text(question, validate=check, key_bindings=bindings)
    typed: str | None = _answer(asked, bindings)
    return typed


def _answer(question: "Question", bindings: "KeyBindings") -> Any:
    """Asks; Escape goes back, and Ctrl-C is an interrupt as everywhere."""

    @bindings.add("escape", eager=True)
    def back(event: "KeyPressEvent") -> None:
        event.app.exit(result=None)

    return question.unsafe_ask()


def _bindings(question: "Question") -> "KeyBindings":
    from prompt_toolkit.key_binding import KeyBindings

    bindings = question.application.key_bindings
    assert isinstance(bindings, KeyBindings)  # noqa: S101  (it tells mypy)
    return bindings


def _list_in(question: "Question") -> "InquirerControl":
    """The list of lines; it takes no more room than it needs, so that the filter is below it."""
    from prompt_toolkit.filters import Always
    from questionary.prompts.common import InquirerControl

    for window in question.application.layout.find_all_windows():
        if isinstance(window.content, InquirerControl):
            window.dont_extend_height = Always()
            return window.content
    raise LookupError("a question without lines")
