"""What each section of the guidelines is found to be worth."""

from pathlib import Path
from typing import Any

import pytest

from eval_pipeline.records.model import Prices
from eval_pipeline.records.prediction import Judgement, Prediction, Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.stats.pairs import holm, mcnemar
from eval_pipeline_tests.ablations import (
    ONE,
    TASKS,
    TWO,
    USUAL,
    Fabricated,
    worse,
)
from eval_pipeline_tests.builders import (
    NOON,
)


def test_a_section_that_is_missed_is_essential_and_one_that_is_not_dispensable(
    tmp_path: Path,
) -> None:
    made = Fabricated(tmp_path, sections=("Types", "Form"))
    made.add("default", USUAL)
    made.add("no_guidelines", [0.0] * TASKS)
    made.add("without_types", worse(12))
    made.add("without_form", USUAL)

    found = made.effects()

    types, form = found["without_types"], found["without_form"]
    assert types.paired and form.paired and types.paired.interval and form.paired.interval
    assert (types.paired.items, types.tasks, types.paired.worse) == (2 * TASKS, TASKS, 24)
    assert types.paired.difference == pytest.approx(-12 / TASKS)
    assert types.paired.interval.low < -0.3 < types.paired.interval.high < 0
    # The models lost the same tasks, so these are 12 signs that may flip and not 24.
    assert types.p_value == pytest.approx(2 * mcnemar(0, 12))
    assert types.worth(0.02) == "essential"
    assert (form.paired.difference, form.p_value) == (0, 1)
    assert form.paired.interval.low == pytest.approx(-1.96 / (TASKS + 2), abs=1e-5)
    assert [form.worth(margin) for margin in (0.02, 0.05)] == ["marginal", "dispensable"]
    assert found["no_guidelines"].p_value == pytest.approx(mcnemar(0, 30))


def test_a_loss_that_may_be_chance_among_so_many_sections_is_not_called_essential(
    tmp_path: Path,
) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types", "Form", "python"))
    made.add("default", USUAL)
    for experiment, lost in (("without_types", 6), ("without_form", 7), ("without_python", 0)):
        made.add(experiment, worse(lost))

    found = made.effects()

    names = ["without_form", "without_python", "without_types"]
    alone = [mcnemar(0, 7), 1.0, mcnemar(0, 6)]
    assert [found[name].p_value for name in names] == pytest.approx(holm(alone))
    assert [found[name].worth(0.02) for name in names] == ["essential", "marginal", "marginal"]
    assert mcnemar(0, 6) < 0.05


def test_better_without_a_section_makes_it_dispensable(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    made.add("default", worse(15))
    made.add("without_types", USUAL)

    types = made.effects()["without_types"]

    assert types.paired and types.paired.difference > 0
    assert types.worth(0.0) == "dispensable"


def test_pairs_without_two_scores_are_left_out_and_counted_by_reason(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, sections=("Types", "Form"))
    made.add("default", [None, *USUAL[1:]])
    made.add("without_types", USUAL, ONE)
    failed = {"run_id": "without_types-run", "item_id": "001-words/007-a-task"}
    made.change(Prediction, failed, outcome="timeout", answer=None)
    made.change(Judgement, failed, score=None, outcome="timeout")

    found = made.effects()

    assert found["without_types"].excluded == {
        "not graded": 1,
        "no answer": 1,
        "not asked": TASKS,
    }
    types = found["without_types"].paired
    assert types and (types.items, types.difference) == (TASKS - 2, 0)
    assert found["without_form"].excluded == {"not asked": 2 * TASKS}
    assert found["without_form"].paired is None
    assert found["without_form"].worth(1.0) == "marginal"


@pytest.mark.parametrize(
    "changes",
    [
        {"parameters": {"temperature": 0, "coding_prompt_hash": "another"}},
        {"experiment": "another"},
        {"benchmark_version": "another"},
        {"samples": 2},
        {"plan": (("coding", "001-words/000-a-task"),)},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_runs_that_were_asked_otherwise_are_not_mixed_in(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    made.add("default", USUAL)
    made.add("without_types", worse(3))
    made.add("without_types", [0.0] * TASKS, run_id="newer", opened_at=NOON.replace(hour=13))
    made.change(Run, {"run_id": "newer"}, **changes)

    types = made.effects()["without_types"]

    assert types.run_ids == ("without_types-run",)
    assert types.paired and types.paired.worse == 3


def test_of_runs_that_were_asked_alike_the_newest_counts(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    hot = {"temperature": 1, "coding_prompt_hash": made.ablation.variations[2].prompt_hash}
    made.add("default", USUAL)
    made.add("without_types", USUAL)
    made.add("without_types", worse(5), run_id="newer", opened_at=NOON.replace(hour=13))
    later = NOON.replace(hour=14)
    made.add("without_types", worse(9), run_id="hot", opened_at=later, parameters=hot)

    types = made.effects()["without_types"]

    assert types.run_ids == ("newer",)
    assert types.paired and types.paired.worse == 5


def test_scores_of_different_judges_are_not_compared(tmp_path: Path) -> None:
    made = Fabricated(tmp_path, ONE, sections=("Types",))
    made.add("default", USUAL)
    made.add("without_types", worse(5))
    made.change(Judgement, {"run_id": "without_types-run"}, judge_version="v2")

    types = made.effects()["without_types"]

    assert types.excluded == {"not graded": TASKS}


def test_tokens_are_measured_where_no_request_was_repeated(tmp_path: Path) -> None:
    dear = ONE.model_copy(update={"prices": Prices(prompt=2e-6, completion=1e-5)})
    made = Fabricated(tmp_path, dear, sections=("Types", "Form"))
    for experiment in ("default", "without_types", "without_form"):
        made.add(experiment, USUAL)
    usual, first = {"run_id": "default-run"}, {"item_id": "001-words/000-a-task"}
    made.change(Prediction, usual, attempts=2, usage=Usage(input_tokens=2000))
    made.change(Prediction, {**usual, **first}, attempts=1, usage=Usage(input_tokens=1000))
    made.change(Prediction, {"run_id": "without_form-run"}, usage=Usage())

    found = made.effects()

    types, form = found["without_types"], found["without_form"]
    assert (types.tokens, types.is_measured) == (50, True)
    assert types.usd == pytest.approx(50 * 2e-6 * 1000)
    assert (form.tokens, form.is_measured) == (form.variation.tokens, False)
    assert form.usd == pytest.approx(form.tokens * 2e-6 * 1000)


def test_a_cost_that_is_not_known_of_every_model_is_not_told(tmp_path: Path) -> None:
    dear = ONE.model_copy(update={"prices": Prices(prompt=2e-6, completion=1e-5)})
    made = Fabricated(tmp_path, dear, TWO, sections=("Types",))
    made.add("default", USUAL)

    found = made.effects()

    assert found["without_types"].usd is None
