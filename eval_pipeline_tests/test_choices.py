"""What the menu offers, line by line, and the command that is made of what was chosen."""

import re
from pathlib import Path

import pytest

from eval_pipeline.cli.menu import (
    CATEGORIES,
    EVERYTHING,
    ITEMS,
    SUITES,
    RunChoice,
    SelectableModel,
    UnfinishedLaunch,
    check_amount,
    check_count,
    exactly,
    experiment_lines,
    finish,
    model_lines,
    name_lines,
    part_lines,
    path_of,
    repeat_failed,
    run_lines,
)
from eval_pipeline.records.item import ItemKey
from eval_pipeline.results.runs import FoundRun
from eval_pipeline.suites.items import Brief
from eval_pipeline_tests.builders import NOON, a_model, settings_in

PRICED = {"prompt": 2.5e-6, "completion": 1e-5}


def a_brief(item_id: str, category: str = "Math", suite: str = "sample") -> Brief:
    return Brief(ItemKey(suite, item_id), category, has_image=False)


def a_launch(*, not_asked: int = 0, failed: int = 0, not_judged: int = 0) -> UnfinishedLaunch:
    lacks = (not_asked, failed, not_judged)
    return UnfinishedLaunch("0123456789", "demo/strong", 1, "default", NOON, *lacks)


@pytest.mark.parametrize(
    ("chosen", "command"),
    [
        (RunChoice(), "run"),
        (RunChoice(models=["a/b", "c/d:e"]), "run -m a/b -m c/d:e"),
        (RunChoice(part=SUITES, names=["sample"]), "run -s sample"),
        (RunChoice(part=CATEGORIES, names=["Math", "Art"]), "run -c Math -c Art"),
        (RunChoice(part=ITEMS, names=["sample/Math/q1"]), "run -f ^(sample/Math/q1)$"),
        (RunChoice(experiment="web_search"), "run -e web_search"),
        (RunChoice(max_samples="5", budget="2.50"), "run --max-samples 5 --budget 2.50"),
    ],
)
def test_what_was_chosen_becomes_a_command(chosen: RunChoice, command: str) -> None:
    assert chosen.words() == command.split()


def test_single_items_are_meant_exactly() -> None:
    briefs = [a_brief(name) for name in ("q1", "q10", "q.", "qx", "q(1", "q1|q2")]

    pattern = re.compile(exactly(map(path_of, (briefs[0], briefs[2], briefs[4]))))

    passed = [one.key.item_id for one in briefs if pattern.search(path_of(one))]
    assert passed == ["q1", "q.", "q(1"]


def test_models_are_shown_with_their_price_and_their_last_accuracy() -> None:
    offered = [
        SelectableModel(a_model("openai/gpt-5", simulated=False, prices=PRICED), 0.804, 158),
        SelectableModel(a_model("demo/weak")),
    ]

    assert [line.title for line in model_lines(offered)] == [
        "all 2 selected models",
        "openai/gpt-5  $2.5/$10 per million tokens, last 80.4% of 158",
        "demo/weak     price unknown, simulated",
    ]
    assert [line.value for line in model_lines(offered)] == ["", "openai/gpt-5", "demo/weak"]


def test_parts_are_offered_with_their_counts() -> None:
    briefs = [a_brief("q1"), a_brief("q2", "Art"), a_brief("t1", suite="coding")]

    parts = {line.value: line.title for line in part_lines(briefs, narrowed=False)}

    assert parts[EVERYTHING] == "everything, of 3 items"
    assert parts[SUITES] == "some of 2 suites"
    assert [line.title for line in name_lines(SUITES, briefs)] == [
        "coding  1 item",
        "sample  2 items",
    ]
    assert [line.value for line in name_lines(CATEGORIES, briefs)] == ["Art", "Math"]
    assert [line.value for line in name_lines(ITEMS, briefs)] == [
        "sample/Math/q1",
        "sample/Art/q2",
        "coding/Math/t1",
    ]


def test_suites_are_not_asked_for_where_there_is_one() -> None:
    parts = part_lines([a_brief("q1"), a_brief("q2")], narrowed=True)

    assert SUITES not in {line.value for line in parts}
    assert parts[0].title == "everything that the settings choose, of 2 items"


@pytest.mark.parametrize("part", [SUITES, CATEGORIES, ITEMS])
def test_a_name_can_not_command_the_terminal(part: str) -> None:
    evil = "\x1b[2Jx"

    (line,) = name_lines(part, [a_brief(evil, evil, evil)])

    assert evil in str(line.value)
    assert isinstance(line.title, str)
    assert line.title.isprintable()


def test_the_experiment_of_the_settings_is_offered_first(tmp_path: Path) -> None:
    settings = settings_in(tmp_path, experiment="web_search")

    names = [str(line.value) for line in experiment_lines(settings)]

    assert names[0] == "web_search"
    assert sorted(names) == sorted(settings.experiments)


@pytest.mark.parametrize(
    ("lacks", "told", "command"),
    [
        ({"not_asked": 2, "failed": 1}, "2 not asked, 1 failed", "run --resume 01234567"),
        ({"failed": 1}, "1 failed", "fix 01234567"),
        ({"not_judged": 3}, "3 not judged", "fix 01234567"),
    ],
)
def test_an_unfinished_run_is_gone_on_with_or_repaired(
    lacks: dict[str, int], told: str, command: str
) -> None:
    launch = a_launch(**lacks)

    (line,) = run_lines([launch])

    assert line.title == f"01234567  2025-01-01 12:00  demo/strong, default: {told}"
    assert finish(launch) == command.split()


def test_what_failed_is_asked_again_of_the_same_models_under_the_same_experiment() -> None:
    runs = [FoundRun("r1", model, "web_search", NOON) for model in ("b/y", "a/x")]

    assert repeat_failed(runs, ["a/x", "b/y"]) == ["run", "--failed", "-e", "web_search"]
    assert repeat_failed(runs, ["a/x", "b/y", "c/z"]) == [
        *("run", "--failed", "-m", "a/x", "-m", "b/y"),
        *("-e", "web_search"),
    ]


@pytest.mark.parametrize(
    ("text", "is_count", "is_amount"),
    [
        ("", True, True),
        (" 5 ", True, True),
        ("2.50", False, True),
        (".5", False, True),
        ("0", False, False),
        ("0.00", False, False),
        (".", False, False),
        ("-1", False, False),
        ("1e3", False, False),
        ("nan", False, False),
        ("\u0663", False, False),
        ("x", False, False),
    ],
)
def test_limits_are_numbers_or_nothing(text: str, is_count: bool, is_amount: bool) -> None:
    assert (check_count(text) is True) is is_count
    assert (check_amount(text) is True) is is_amount
