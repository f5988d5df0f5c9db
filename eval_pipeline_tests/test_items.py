"""Items stay on disk: each is read when asked for, and planning needs none of them."""

import gc
import json
import tracemalloc
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from eval_pipeline.journal import JournalError
from eval_pipeline.records.item import ExamQuestion, ItemKey
from eval_pipeline.suites.items import Brief, Items, Places, briefs
from eval_pipeline_tests.builders import a_question

PICTURE = "data:image/png;base64,AAAA"


def some_items(folder: Path, *suites: Iterable[ExamQuestion]) -> Items:
    lines = [[question.model_dump_json().encode() for question in suite] for suite in suites]
    return items_of(folder, *lines)


def items_of(folder: Path, *files: list[bytes]) -> Items:
    paths = [folder / f"{number}.jsonl" for number in range(len(files))]
    for path, lines in zip(paths, files, strict=True):
        path.write_bytes(b"".join(line + b"\n" for line in lines))
    opened = [path.open("rb") for path in paths]
    try:
        return Items(opened)
    finally:
        for file in opened:
            file.close()


def test_items_of_several_files_are_one_mapping_in_their_order(tmp_path: Path) -> None:
    questions = [
        a_question("q2", question="Wie groß ist ½?\u2028\n"),
        a_question("q1", image=PICTURE),
        a_question("q2", suite="private", question=""),
    ]

    items = some_items(tmp_path, questions[:2], [], questions[2:])

    assert list(items) == [("sample", "q2"), ("sample", "q1"), ("private", "q2")]
    assert list(items.values()) == questions
    assert [items[key] for key in reversed(list(items))] == questions[::-1]
    assert len(items) == 3


def test_an_item_that_is_not_there_is_missing_as_in_any_mapping(tmp_path: Path) -> None:
    items, nothing = some_items(tmp_path, [a_question("q1")]), ItemKey("sample", "q2")

    with pytest.raises(KeyError, match="q2"):
        items[nothing]

    assert nothing not in items
    assert items.get(nothing) is None
    assert len(some_items(tmp_path)) == 0


def test_briefs_are_those_of_the_same_items_in_memory(tmp_path: Path) -> None:
    questions = [
        a_question("q1"),
        a_question("q2", image=PICTURE),
        a_question("q3", category="Physics"),
        a_question("q4", category="Physics", image=""),
    ]

    found = list(briefs(some_items(tmp_path, questions)))

    assert found == list(briefs({ItemKey("sample", one.id): one for one in questions}))
    assert found[1:3] == [
        Brief(ItemKey("sample", "q2"), "Math", has_image=True),
        Brief(ItemKey("sample", "q3"), "Physics", has_image=False),
    ]


def test_items_can_be_read_when_their_file_has_no_name_any_more(tmp_path: Path) -> None:
    items = some_items(tmp_path, [a_question("q1")])

    (tmp_path / "0.jsonl").unlink()

    assert items[ItemKey("sample", "q1")] == a_question("q1")


def test_files_are_closed_when_nobody_holds_the_items_any_more(tmp_path: Path) -> None:
    gc.collect()
    before = len(list(Path("/dev/fd").iterdir()))

    items = some_items(tmp_path, [a_question("q1")], [a_question("q2")])
    held = len(list(Path("/dev/fd").iterdir()))
    del items
    gc.collect()

    assert held == before + 2
    assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.mark.parametrize("line", [b'{"suite": "sam', b"[]", b'{"suite": "sample", "id": "q2"}'])
def test_a_line_that_is_no_item_is_told_with_its_number(tmp_path: Path, line: bytes) -> None:
    whole = a_question("q1").model_dump_json().encode()

    with pytest.raises(JournalError, match=r"0\.jsonl, line 2 is no item: "):
        items_of(tmp_path, [whole, line])


def test_an_item_that_lacks_something_is_told_when_it_is_asked_for(tmp_path: Path) -> None:
    whole = a_question("q1").model_dump(mode="json")
    broken = {name: value for name, value in whole.items() if name != "answer"} | {"id": "q2"}
    items = items_of(tmp_path, [json.dumps(whole).encode()], [json.dumps(broken).encode()])

    with pytest.raises(JournalError, match=r"1\.jsonl, line 1 is no item: Field required"):
        items[ItemKey("sample", "q2")]


def test_an_item_takes_less_than_200_bytes_of_memory(tmp_path: Path) -> None:
    names = [sha256(b"%d" % number).hexdigest()[:24] for number in range(4000)]
    path = tmp_path / "items.jsonl"
    with path.open("w") as file:
        file.writelines(a_question(name).model_dump_json() + "\n" for name in names)
    del names
    tracemalloc.start()

    with path.open("rb") as opened:
        items = Items([opened])
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert taken / len(items) < 200


keys = st.builds(ItemKey, st.sampled_from(["a", "b"]), st.text(max_size=3))


@hypothesis_settings(max_examples=100, deadline=None, database=None)
@given(present=st.lists(keys, unique=True, max_size=40), others=st.sets(keys, max_size=20))
def test_each_key_is_found_at_its_place_and_no_other(
    present: list[ItemKey], others: set[ItemKey]
) -> None:
    places = Places(present)

    assert [places.find(key) for key in present] == list(range(len(present)))
    assert {places.find(key) for key in others - set(present)} <= {None}
