"""Any two models or runs side by side: what names mean, the numbers, and what is printed."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eval_pipeline.errors import RunError
from eval_pipeline.hashing import fingerprint
from eval_pipeline.records.run import Run
from eval_pipeline.results.comparisons import SideBySide, compare_sides
from eval_pipeline.results.tables.comparison import comparison_lines
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.suites.benchmark import Benchmark
from eval_pipeline_tests.boards import (
    EXAM,
    ITEMS,
    TEXT,
    Records,
    Scores,
    graded,
    scores_of,
    taken,
    verdicts,
)
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_prediction,
    a_question,
)
from eval_pipeline_tests.test_metrics import Row, published, rows

LATER = NOON + timedelta(hours=1)
OWN, TRIAL = EXAM.version.judge_prompt_hash, fingerprint("a prompt on trial")
ON_TRIAL = {"judge_version": "trial", "prompt_hash": TRIAL, "finished_at": LATER}
OTHER_LIMIT = {"judge_version": "limit", "prompt_hash": OWN, "finished_at": LATER}
NEW = a_benchmark(a_question("new"))
ON_THE_BOARD = graded(taken("demo/new", benchmark=NEW), [1.0], **ON_TRIAL)
NAMES = ("demo/a", "demo/b", "demo/thrice", "demo/text", "demo/twice")


def the_records() -> Records:
    """Models on the leaderboard, one that is not, a draft, and a judge whom few have met."""
    runs: list[tuple[Run, Scores]] = [
        (taken("demo/a", "aaaa-1111"), scores_of(0.95, seed=1)),
        (taken("demo/b", "bbbb-1111"), scores_of(0.5, seed=2)),
        *(
            (taken("demo/thrice", f"cccc-{n}", hour=n), scores_of(0.4, seed=10 + n))
            for n in range(3)
        ),
        (taken("demo/text", "dddd-1", plan=TEXT, scope="text"), scores_of(0.6, seed=3, items=36)),
        (taken("demo/twice", "eeee-1", samples=2), scores_of(0.7, seed=4, samples=2)),
        (taken("demo/a@2025", "ffff-1"), scores_of(0.3, seed=5)),
        (taken("demo/a", "aaaa-2222", experiment="hot"), scores_of(0.2, seed=6)),
    ]
    records = [record for run, scores in runs for record in graded(run, scores)]
    part = taken("demo/part", "abcd-1")
    elsewhere = taken("demo/elsewhere", "gggg-1")
    return [
        *records,
        *graded(part, [1.0] * 7),
        *graded(elsewhere, scores_of(0.5, seed=7), judge="other/judge"),
    ]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("sides")
    before = a_benchmark(a_question("q00"), loaded_at=NOON - timedelta(days=1))
    old = taken("demo/old", "0000-1", benchmark=before)
    a_journal(folder, *graded(old, [1.0]), benchmark=before)
    return published(folder, *the_records(), benchmark=EXAM)


def side_by_side(warehouse: Warehouse, a: str, b: str, **how: Any) -> SideBySide:
    with warehouse.reading() as db:
        return compare_sides(db, a, b, **{"experiment": "default", "judge": None, **how})


@pytest.mark.parametrize(
    ("name", "model", "runs"),
    [
        ("demo/a", "demo/a", ["aaaa-1111"]),
        ("demo/thrice", "demo/thrice", ["cccc-2", "cccc-1", "cccc-0"]),
        ("aaaa-1", "demo/a", ["aaaa-1111"]),
        ("aaaa-2222", "demo/a", ["aaaa-2222"]),
        ("demo/a@aaaa-2", "demo/a", ["aaaa-2222"]),
        ("demo/thrice@cccc-1", "demo/thrice", ["cccc-1"]),
        ("demo/a@2025", "demo/a@2025", ["ffff-1"]),
        ("demo/a@2025@f", "demo/a@2025", ["ffff-1"]),
        ("demo/part@", "demo/part", ["abcd-1"]),
        ("abcd", "demo/part", ["abcd-1"]),
    ],
)
def test_a_name_is_a_model_a_run_or_both(
    warehouse: Warehouse, name: str, model: str, runs: Sequence[str]
) -> None:
    found = side_by_side(warehouse, name, "demo/b")

    assert (found.a.model, found.a.run_ids) == (model, runs)
    assert found.b.model == "demo/b"


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("aaaa", "'aaaa' may be any of 2: demo/a@aaaa-111, demo/a@aaaa-222. Which one?"),
        ("demo/thrice@", "any of 3: demo/thrice@cccc-0, demo/thrice@cccc-1, demo/thrice@cccc-2."),
        ("demo/nobody", "There is no judged run of 'demo/nobody'."),
        ("demo/a@zzzz", "There is no judged run of 'demo/a@zzzz'."),
        ("zzzz", "There is no judged run of 'zzzz'."),
        ("demo/part", "'demo/part' is not on the leaderboard under the experiment 'default'. It"),
        ("demo/part", "these runs: demo/part@abcd-1. Which one?"),
        ("0000", "what a pass means differs, so they cannot be compared"),
        ("demo/elsewhere", "have no verdicts of one judge in the same version in common"),
        ("", "may be any of "),
    ],
)
def test_a_name_that_can_not_be_compared_is_answered_with_what_to_do(
    warehouse: Warehouse, name: str, sentence: str
) -> None:
    with pytest.raises(RunError) as as_first:
        side_by_side(warehouse, name, "demo/b")
    with pytest.raises(RunError) as as_second:
        side_by_side(warehouse, "demo/b", name)

    assert sentence in str(as_first.value)
    assert sentence in str(as_second.value)


def test_a_run_whose_whole_id_is_given_is_meant_even_if_others_begin_so(tmp_path: Path) -> None:
    scores = scores_of(0.5, seed=1)
    runs = [taken("demo/a", run_id, hour=n) for n, run_id in enumerate(["run-1", "run-10"])]

    warehouse = published(
        tmp_path, *graded(runs[0], scores), *graded(runs[1], 1 - scores), benchmark=EXAM
    )

    for name in ("run-1", "demo/a@run-1"):
        assert side_by_side(warehouse, name, "run-10").a.run_ids == ["run-1"]


def test_the_numbers_are_those_of_the_comparison_whatever_the_order(warehouse: Warehouse) -> None:
    compared = rows(warehouse, "from comparisons where family = 'models' and model_a <> model_b")
    chosen = [row for row in compared if {row["model_a"], row["model_b"]} <= set(NAMES)]

    assert len(chosen) == 10
    for row in chosen:
        found = side_by_side(warehouse, row["model_a"], row["model_b"])
        back = side_by_side(warehouse, row["model_b"], row["model_a"])
        for name, value in numbers(found).items():
            # The items come in another order, so that a sum may be rounded otherwise.
            close = pytest.approx(row[name], rel=1e-12) if isinstance(value, float) else row[name]
            assert value == close, name
        assert (back.corrected, back.pairs) == (found.corrected, found.pairs)
        assert back.compared.paired.difference == -found.compared.paired.difference
        assert back.compared.paired.interval and found.compared.paired.interval
        assert back.compared.paired.interval.low == -found.compared.paired.interval.high


def numbers(found: SideBySide) -> Row:
    one, paired = found.compared, found.compared.paired
    assert paired.interval and paired.bootstrap
    return {
        "items": paired.items,
        "accuracy_a": one.accuracy_a,
        "accuracy_b": one.accuracy_b,
        "difference": paired.difference,
        "difference_low": paired.interval.low,
        "difference_high": paired.interval.high,
        "bootstrap_low": paired.bootstrap.low,
        "bootstrap_high": paired.bootstrap.high,
        "standard_error": paired.standard_error,
        "standard_error_clustered": one.standard_error_clustered,
        "better": paired.better,
        "worse": paired.worse,
        "test": paired.test,
        "p_value": paired.p_value,
        "p_adjusted": found.corrected,
        "pairs": found.pairs,
        "detectable": paired.detectable(found.pairs or 1),
    }


def test_the_corrected_p_value_is_that_of_the_leaderboard_and_of_nothing_else(
    warehouse: Warehouse,
) -> None:
    board = side_by_side(warehouse, "demo/a", "demo/thrice")
    one_run = side_by_side(warehouse, "demo/a", "cccc-1")

    assert board.corrected is not None and board.pairs == 15
    assert (one_run.corrected, one_run.pairs) == (None, None)
    assert "corrected for 15 pairs (Holm)" in "\n".join(comparison_lines(board))
    assert "corrected" not in "\n".join(comparison_lines(one_run))


def test_a_single_run_of_several_is_not_corrected_whichever_side_it_is_on(
    warehouse: Warehouse,
) -> None:
    found = "select model_a, model_b from comparisons where 'demo/thrice' in (model_a, model_b)"
    pairs = rows(warehouse, f"{found} and experiment_a = experiment_b")
    # The better one comes first there, so that both columns of runs are put to the test.
    assert {row["model_a"] == "demo/thrice" for row in pairs} == {True, False}

    for row in pairs:
        (other,) = {row["model_a"], row["model_b"]} - {"demo/thrice"}
        for a, b in ((other, "cccc-1"), ("cccc-1", other)):
            single = side_by_side(warehouse, a, b)
            assert (single.corrected, single.pairs) == (None, None)


def test_the_items_on_which_they_differ_are_listed_those_that_a_won_first(
    warehouse: Warehouse,
) -> None:
    found = side_by_side(warehouse, "demo/a", "demo/thrice")

    gaps = [one.score_a - one.score_b for one in found.differences]
    paired = found.compared.paired
    assert sum(gap > 0 for gap in gaps) == paired.better > 0
    assert sum(gap < 0 for gap in gaps) == paired.worse > 0
    assert gaps == sorted(gaps, reverse=True)
    wins = [one.item_id for one in found.differences if one.score_a - one.score_b == 1]
    assert wins == sorted(wins)
    assert {one.category for one in found.differences} <= {"Biology", "Math", "Physics"}


def test_the_judge_is_the_one_last_at_work_and_the_runs_are_those_that_count_for_it(
    tmp_path: Path,
) -> None:
    first, second, other = taken("demo/a", "1"), taken("demo/a", "2", hour=1), taken("demo/b")
    ones, zeros = np.ones((ITEMS, 1)), np.zeros((ITEMS, 1))
    new = {"judge_version": "v0", "finished_at": LATER}

    warehouse = published(
        tmp_path,
        *[*graded(first, zeros), *graded(second, zeros), *graded(other, ones)],
        *[*verdicts(second, ones, **new), *verdicts(other, zeros, **new)],
        *verdicts(first, ones, judge="other/judge"),
        benchmark=EXAM,
    )

    found = side_by_side(warehouse, "demo/a", "demo/b")
    asked = side_by_side(warehouse, "demo/a", "demo/b", judge="demo/judge")
    assert (found.judge.version, found.a.run_ids) == ("v0", ["2"])
    assert found.compared.paired.difference == 1
    assert found.corrected is not None
    assert asked == found
    with pytest.raises(RunError, match="no verdicts of other/judge in common"):
        side_by_side(warehouse, "demo/a", "demo/b", judge="other/judge")


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """Verdicts with the version's own prompt, and later ones of two kinds that say the opposite."""
    a, b, c, d = (taken(f"demo/{name}", f"{name}-run") for name in "abcd")
    ones, zeros = np.ones((ITEMS, 1)), np.zeros((ITEMS, 1))
    return published(
        tmp_path_factory.mktemp("tried"),
        *[*graded(a, ones, prompt_hash=OWN), *verdicts(a, zeros, **ON_TRIAL)],
        *[*graded(b, zeros, prompt_hash=OWN), *verdicts(b, ones, **ON_TRIAL)],
        *[*graded(c, ones, **ON_TRIAL), *graded(d, ones, prompt_hash=OWN)],
        *[*verdicts(a, zeros, **OTHER_LIMIT), *verdicts(b, ones, **OTHER_LIMIT)],
        benchmark=EXAM,
    )


@pytest.mark.parametrize("judge", [None, "demo/judge"])
@pytest.mark.parametrize(
    ("a", "b"), [("demo/a", "demo/b"), ("demo/a@", "demo/b"), ("a-run", "b-run")]
)
def test_official_verdicts_are_preferred_to_later_ones(
    tried: Warehouse, a: str, b: str, judge: str | None
) -> None:
    found = side_by_side(tried, a, b, judge=judge)

    assert (found.judge.version, found.compared.paired.difference) == ("v1", 1)
    assert found.is_official
    assert "another prompt" not in "\n".join(comparison_lines(found))


@pytest.mark.parametrize(("a", "c"), [("demo/a", "demo/c"), ("a-run", "c-run")])
def test_what_only_verdicts_on_trial_have_in_common_is_compared_and_said(
    tried: Warehouse, a: str, c: str
) -> None:
    found = side_by_side(tried, a, c)

    assert (found.judge.version, found.compared.paired.difference) == ("trial", -1)
    assert not found.is_official
    assert comparison_lines(found)[2].endswith(
        "scored on by demo/judge, with another prompt or limit than its official verdicts"
    )
    with pytest.raises(RunError, match="no verdicts of one judge in the same version in common"):
        side_by_side(tried, c, "demo/d")


@pytest.mark.parametrize(
    ("published_last", "on_the_board"), [(EXAM, []), (NEW, ON_THE_BOARD)], ids=["same", "newer"]
)
@pytest.mark.parametrize(("prompt", "chosen"), [(OWN, "v1"), (None, "v1"), (TRIAL, "trial")])
def test_of_runs_that_never_were_on_this_leaderboard_the_prompt_of_their_version_is_official(
    tmp_path: Path,
    prompt: str | None,
    chosen: str,
    published_last: Benchmark,
    on_the_board: Records,
) -> None:
    earlier = EXAM.version.model_copy(update={"loaded_at": NOON - timedelta(days=1)})
    runs = [taken("demo/a", f"{n}", plan=TEXT[:4], scope="filtered") for n in range(2)]
    records: Records = []
    for run in runs:
        records += graded(run, [1.0] * 4, prompt_hash=prompt)
        records += verdicts(run, [0.0] * 4, **ON_TRIAL)
    a_journal(tmp_path, *records, benchmark=Benchmark(earlier, EXAM.items))

    warehouse = published(tmp_path, *on_the_board, benchmark=published_last)

    found = side_by_side(warehouse, "0", "1")
    assert found.judge.version == chosen
    assert found.is_official is (chosen == "v1")


def test_what_is_not_in_the_plan_of_a_run_is_not_compared(tmp_path: Path) -> None:
    a, b = (taken(model, plan=TEXT[:3]) for model in ("demo/a", "demo/b"))
    beyond = a_prediction("q00", model="demo/a", sample=1, prediction_id="beyond")

    warehouse = published(
        tmp_path,
        *[*graded(a, [1.0, 1.0, 1.0]), beyond, a_judgement(beyond, 0.0)],
        *graded(b, [1.0, 1.0, 0.0]),
        benchmark=EXAM,
    )

    found = side_by_side(warehouse, "demo/a", "demo/b")
    assert [one.item_id for one in found.differences] == ["q02"]
    assert found.compared.accuracy_a == 1


def test_an_experiment_is_named_and_so_is_that_a_model_is_simulated(warehouse: Warehouse) -> None:
    found = side_by_side(warehouse, "demo/a", "demo/a@aaaa-2")
    board = side_by_side(warehouse, "demo/thrice", "demo/a", experiment="default")

    assert found.b.name == "demo/a (simulated, hot, run aaaa-222)"
    assert board.a.name == "demo/thrice (simulated, 3 runs)"
    # A single run of each is what stands on the leaderboard, so this pair is corrected as well.
    assert found.corrected is not None and found.pairs == 1


def test_a_model_and_itself_can_not_be_told_apart(warehouse: Warehouse) -> None:
    found = side_by_side(warehouse, "demo/a", "aaaa-1111")

    assert found.differences == []
    assert comparison_lines(found)[-1] == "They can not be told apart."


def test_two_runs_that_share_no_item_can_not_be_compared(tmp_path: Path) -> None:
    a, b = (taken("demo/a", f"{n}", plan=[TEXT[n]], scope="filtered") for n in range(2))

    warehouse = published(tmp_path, *graded(a, [1.0]), *graded(b, [1.0]), benchmark=EXAM)

    with pytest.raises(RunError, match="share no item that demo/judge has scored"):
        side_by_side(warehouse, "0", "1")
