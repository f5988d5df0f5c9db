"""Edits can be taken back, failed edits leave no trace, and nothing is shared."""

from typing import Any

import pytest
from draft import Draft, DraftError


def a_page() -> dict[str, Any]:
    return {"page": {"title": "Hi", "tags": ["a"]}, "count": 1, "note": None}


def test_edits_are_seen_in_the_content() -> None:
    draft = Draft(a_page())

    draft.put("page.title", "Bye")
    draft.put("page.meta.author.name", "Ada")
    draft.put("count", {"total": 2})
    draft.remove("note")

    assert draft.content() == {
        "page": {"title": "Bye", "tags": ["a"], "meta": {"author": {"name": "Ada"}}},
        "count": {"total": 2},
    }


def test_undo_and_redo_walk_through_the_versions() -> None:
    draft = Draft({})
    draft.put("a.b", 1)
    draft.put("a.b", 2)
    draft.remove("a")
    versions: list[dict[str, Any]] = [{}, {"a": {"b": 1}}, {"a": {"b": 2}}, {}]

    back = [draft.content()]
    while draft.undo():
        back.append(draft.content())
    forth = [draft.content()]
    while draft.redo():
        forth.append(draft.content())

    assert back == versions[::-1]
    assert forth == versions


def test_there_may_be_nothing_to_undo_or_redo() -> None:
    draft = Draft(a_page())

    assert (draft.undo(), draft.redo()) == (False, False)
    assert draft.content() == a_page()


def test_an_edit_after_undo_ends_redo() -> None:
    draft = Draft({})
    draft.put("a", 1)
    draft.put("b", 2)
    draft.undo()

    draft.put("c", 3)

    assert draft.redo() is False
    assert draft.content() == {"a": 1, "c": 3}
    assert draft.undo() is True
    assert draft.content() == {"a": 1}


def test_setting_an_equal_value_is_a_step() -> None:
    draft = Draft({"a": 1})
    draft.put("a", 2)
    draft.put("a", 2)

    assert [draft.undo(), draft.undo(), draft.undo()] == [True, True, False]


def test_removing_an_existing_none_is_possible() -> None:
    draft = Draft({"a": None, "b": {"c": None}})

    draft.remove("a")
    draft.remove("b.c")

    assert draft.content() == {"b": {}}


def test_undo_brings_back_none_and_absence_apart() -> None:
    draft = Draft({"a": None})
    draft.put("a", 1)
    draft.put("b", 1)

    draft.undo()
    assert draft.content() == {"a": 1}
    draft.undo()
    assert draft.content() == {"a": None}


@pytest.mark.parametrize(
    "path", ["count.x", "note.x", "page.tags.0", "page.title.x.y", "new.", "", ".", "new..x", ".a"]
)
def test_a_failed_put_leaves_no_trace(path: str) -> None:
    draft = Draft(a_page())
    draft.put("count", 2)
    draft.undo()

    with pytest.raises(DraftError):
        draft.put(path, 5)

    assert draft.content() == a_page()
    assert draft.undo() is False
    assert draft.redo() is True
    assert draft.content() == a_page() | {"count": 2}


def test_a_put_that_fails_deep_down_creates_nothing_on_the_way() -> None:
    draft = Draft({"a": {"b": 1}})

    with pytest.raises(DraftError):
        draft.put("new.b..c", 5)
    with pytest.raises(DraftError):
        draft.put("a.b.c.d", 5)

    assert draft.content() == {"a": {"b": 1}}


@pytest.mark.parametrize(
    "path",
    ["missing", "page.missing", "missing.x", "count.x", "note.x", "page.tags.0", "", "page."],
)
def test_a_failed_remove_leaves_no_trace(path: str) -> None:
    draft = Draft(a_page())
    draft.put("count", 2)
    draft.undo()

    with pytest.raises(DraftError):
        draft.remove(path)

    assert draft.content() == a_page()
    assert (draft.undo(), draft.redo()) == (False, True)


def test_changing_what_was_passed_in_changes_nothing() -> None:
    given, value = a_page(), {"rows": [[1]]}
    draft = Draft(given)
    draft.put("table", value)

    given["page"]["tags"].append("b")
    value["rows"][0].append(2)

    assert draft.content() == a_page() | {"table": {"rows": [[1]]}}
    draft.undo()
    assert draft.content() == a_page()
    draft.redo()
    assert draft.content() == a_page() | {"table": {"rows": [[1]]}}


def test_changing_what_was_returned_changes_nothing() -> None:
    draft = Draft(a_page())
    draft.put("page.title", "Bye")

    draft.content()["page"]["tags"].append("b")
    draft.content()["page"]["title"] = "?"
    draft.undo()
    draft.content()["page"]["tags"].clear()

    assert draft.content() == a_page()
    draft.redo()
    assert draft.content()["page"] == {"title": "Bye", "tags": ["a"]}


def test_what_was_passed_in_is_not_changed_by_edits() -> None:
    given, value = a_page(), {"x": 1}
    draft = Draft(given)

    draft.put("page.title", "Bye")
    draft.put("box", value)
    draft.put("box.x", 2)

    assert given == a_page()
    assert value == {"x": 1}


def test_one_value_put_in_two_places_is_two_values() -> None:
    draft, value = Draft({}), {"x": 1}
    draft.put("a", value)
    draft.put("b", value)

    draft.put("a.x", 2)

    assert draft.content() == {"a": {"x": 2}, "b": {"x": 1}}
