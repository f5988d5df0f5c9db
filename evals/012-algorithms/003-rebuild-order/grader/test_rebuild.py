"""Rebuilding: what is affected, in which order, and circles."""

import pytest
from rebuild import CycleError, rebuild_order

PROJECT = {"app": ["lib", "ui"], "ui": ["lib"], "docs": []}


def circle_of(needs: dict[str, list[str]], changed: list[str]) -> list[str]:
    with pytest.raises(CycleError) as caught:
        rebuild_order(needs, changed)
    return str(caught.value).split(" -> ")


def test_everything_that_needs_a_change_comes_after_what_it_needs() -> None:
    assert rebuild_order(PROJECT, ["lib"]) == ["lib", "ui", "app"]


def test_what_needs_no_change_is_left_alone() -> None:
    assert rebuild_order(PROJECT, ["ui"]) == ["ui", "app"]
    assert rebuild_order(PROJECT, ["docs"]) == ["docs"]
    assert rebuild_order(PROJECT, []) == []
    assert rebuild_order({}, []) == []


def test_a_changed_name_that_nobody_mentions_is_built() -> None:
    assert rebuild_order(PROJECT, ["new", "ui"]) == ["new", "ui", "app"]


def test_repeated_names_count_once() -> None:
    needs = {"app": ["lib", "lib", "ui"], "ui": ["lib", "lib"]}

    assert rebuild_order(needs, ["lib", "lib"]) == ["lib", "ui", "app"]


def test_the_smallest_name_that_can_be_built_comes_next() -> None:
    needs = {"a": ["z"], "b": [], "c": ["b"], "d": ["a"], "y": ["b"]}

    assert rebuild_order(needs, ["z", "b"]) == ["b", "c", "y", "z", "a", "d"]


def test_a_name_set_free_late_goes_before_larger_ones_that_waited() -> None:
    needs = {"c": ["b"], "a": ["b"], "m": ["a"], "x": ["root"], "b": ["root"]}

    assert rebuild_order(needs, ["root"]) == ["root", "b", "a", "c", "m", "x"]


def test_names_are_compared_as_strings() -> None:
    needs = {name: ["src"] for name in ["b", "B", "a10", "a9", "_"]}

    assert rebuild_order(needs, ["src"]) == ["src", "B", "_", "a10", "a9", "b"]


def test_a_need_outside_of_the_rebuild_set_is_built_already() -> None:
    needs = {"app": ["lib", "assets"], "assets": ["images"], "lib": ["core"]}

    assert rebuild_order(needs, ["lib"]) == ["lib", "app"]


def test_a_circle_is_named_from_its_smallest_name_in_the_direction_of_need() -> None:
    needs = {"c": ["b"], "a": ["c"], "b": ["a"]}

    for changed in ("a", "b", "c"):
        assert circle_of(needs, [changed]) == ["a", "c", "b", "a"]


def test_a_name_that_needs_itself_is_a_circle() -> None:
    assert circle_of({"a": ["a"], "b": ["a"]}, ["a"]) == ["a", "a"]


def test_names_before_and_behind_a_circle_are_not_part_of_it() -> None:
    needs = {
        "a-user": ["loop2"],
        "b-user": ["a-user"],
        "loop1": ["loop2", "a-base"],
        "loop2": ["loop3"],
        "loop3": ["loop1"],
    }

    assert circle_of(needs, ["a-base"]) == ["loop1", "loop2", "loop3", "loop1"]


def test_of_several_circles_one_is_named() -> None:
    needs = {
        "a": ["b", "src"],
        "b": ["c", "a"],
        "c": ["a", "d"],
        "d": ["c"],
        "e": ["e", "src"],
    }

    circle = circle_of(needs, ["src"])

    assert circle[0] == circle[-1] == min(circle)
    assert len(set(circle)) == len(circle) - 1
    assert all(after in needs[name] for name, after in zip(circle, circle[1:], strict=False))


def test_circles_outside_of_the_rebuild_set_do_not_matter() -> None:
    needs = {"x": ["y"], "y": ["x"], "app": ["lib", "x"]}

    assert rebuild_order(needs, ["lib"]) == ["lib", "app"]


def test_long_chains_are_ordered_and_long_circles_are_found() -> None:
    names = [f"n{number:04}" for number in range(5_000)]
    chain = {name: [before] for before, name in zip(names, names[1:], strict=False)}

    assert rebuild_order(chain, [names[0]]) == names
    circle = circle_of({**chain, names[0]: [names[-1]]}, [names[7]])
    assert circle == [names[0], *reversed(names)]
