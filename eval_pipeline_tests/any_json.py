"""JSON that no server should send: any shape, with the words of a dialect in any place."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st
from pydantic import JsonValue

from eval_pipeline.gateways.chat import ChatReply, ProviderError
from eval_pipeline.gateways.pool import DIALECTS
from eval_pipeline.records.model import DialectName


def objects_of(words: str) -> st.SearchStrategy[dict[str, Any]]:
    """Objects whose names and texts are mostly these words, nested as deep as replies are."""
    word = st.sampled_from(words.split())
    number = st.integers() | st.floats() | st.just(10**400) | st.booleans()
    leaf: st.SearchStrategy[Any] = st.none() | number | word | st.text(max_size=5)
    value = st.recursive(
        leaf,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(word, inner, max_size=5),
        max_leaves=20,
    )
    return st.dictionaries(word, value, max_size=6)


def spoiled(objects: list[dict[str, Any]]) -> st.SearchStrategy[list[dict[str, Any]]]:
    """The objects with another value in up to three of their places."""
    place = st.sampled_from(list(_places(objects)))
    junk: st.SearchStrategy[Any] = st.sampled_from(
        [None, 0, -1.5, True, 10**400, "", "x", [], [7], [[]], {}, {"type": []}]
    )
    changes = st.lists(st.tuples(place, junk), min_size=1, max_size=3)
    return changes.map(lambda changes: _changed(objects, changes))


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if len(path) > 1:
        yield path
    if isinstance(value, dict | list):
        for name, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _places(inner, (*path, name))


def _changed(objects: Any, changes: list[tuple[tuple[Any, ...], Any]]) -> Any:
    copy = deepcopy(objects)
    # The deepest first: a change further up would take their places away.
    for (*path, last), value in sorted(changes, key=lambda change: -len(change[0])):
        target = copy
        for name in path:
            target = target[name]
        target[last] = deepcopy(value)
    return copy


def read(
    dialect: DialectName, events: list[dict[str, Any]], whole: dict[str, Any] | None
) -> ChatReply | ProviderError:
    """What becomes of the events, and then of the whole, if there is any."""
    collected = DIALECTS[dialect].collect(0.0, str)
    try:
        for event in events:
            collected.add_event(event)
        if whole is not None:
            collected.add_whole(whole)
    except ProviderError as error:
        return error
    return collected.reply(str)


def usage_values() -> list[tuple[JsonValue, int | None, float | None]]:
    """What may be stated as a number, and what of it can be tokens or dollars."""
    return [
        (12, 12, 12.0),
        (0, 0, 0.0),
        (-1, None, None),
        (2**40, None, None),
        (10**400, None, None),
        (1.5, None, 1.5),
        ("12", None, None),
        (True, None, None),
        (None, None, None),
        ({"total": 1}, None, None),
        (float("nan"), None, None),
        (float("inf"), None, None),
        (float("-inf"), None, None),
    ]
