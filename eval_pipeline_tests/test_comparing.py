"""Models compared item by item, against pandas, scipy and statsmodels over the same scores."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from scipy.stats import norm, sem
from statsmodels.stats.contingency_tables import mcnemar

from eval_pipeline.records.run import Run
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.boards import (
    ABOUT,
    EXAM,
    ITEMS,
    TEXT,
    Records,
    Scores,
    answers,
    graded,
    item_means,
    scores_of,
    taken,
    verdicts,
)
from eval_pipeline_tests.builders import a_benchmark, a_journal, a_question
from eval_pipeline_tests.references import holm_of_statsmodels
from eval_pipeline_tests.test_metrics import Row, published, rows

FIRST, SECOND, OTHER = ("demo/judge", "v1"), ("demo/judge", "v2"), ("other/judge", "v1")
Judge = tuple[str, str]
SKILLS = {
    **{"demo/a": 0.95, "demo/b": 0.85, "demo/c": 0.5, "demo/d": 0.15},
    **{"demo/text": 0.7, "demo/thrice": 0.6, "demo/twice": 0.4},
}


class Standing(NamedTuple):
    """What is known of an entry without the pipeline: whose it is, and its scores."""

    judge: Judge
    model: str
    experiment: str
    runs: Sequence[tuple[Run, Scores]]

    @property
    def replies(self) -> int:
        return sum(run.samples for run, _ in self.runs)

    @property
    def run_ids(self) -> list[str]:
        return [run.run_id for run, _ in self.runs]


def the_runs(model: str, experiment: str = "default") -> list[Run]:
    """The runs of a model, the latest first: one over all items, or what its name says."""
    changes: dict[str, Any] = {"experiment": experiment}
    if model == "demo/text":
        return [taken(model, f"{experiment}-1", plan=TEXT, scope="text", **changes)]
    if model == "demo/thrice":
        return [taken(model, f"{experiment}-{n}", hour=n, **changes) for n in (3, 2, 1)]
    samples = 2 if model == "demo/twice" else 1
    return [taken(model, f"{experiment}-1", samples=samples, **changes)]


def the_standings() -> list[Standing]:
    """Seven models by one judge, three of them by its next version too, two by another judge."""
    about = [(FIRST, model, "default") for model in SKILLS]
    about += [(FIRST, model, "hot") for model in ("demo/a", "demo/c")]
    about += [(SECOND, model, "default") for model in ("demo/a", "demo/b", "demo/d")]
    about += [(OTHER, model, "default") for model in ("demo/b", "demo/d")]
    found = []
    for seed, (judge, model, experiment) in enumerate(about):
        skill = SKILLS[model] - (0.4 if experiment == "hot" else 0)
        runs = [
            (run, scores_of(skill, seed=100 * seed + n, items=len(run.plan), samples=run.samples))
            for n, run in enumerate(the_runs(model, experiment))
        ]
        found.append(Standing(judge, model, experiment, runs))
    return found


def the_records(standings: Sequence[Standing]) -> Records:
    records: Records = []
    for (judge, version), _, _, runs in standings:
        for run, scores in runs:
            records += [run, *answers(run)] if run not in records else []
            records += verdicts(run, scores, judge=judge, judge_version=version)
    return records


def never_compared() -> Records:
    """A run that lacks a verdict, one of some items only, one that nobody has judged."""
    lacking, filtered, unjudged = (
        taken("demo/lacking"),
        taken("demo/filtered", plan=TEXT[:9], scope="filtered"),
        taken("demo/unjudged"),
    )
    return [
        *graded(lacking, [1.0] * (ITEMS - 1)),
        *graded(filtered, [1.0] * 9),
        unjudged,
        *answers(unjudged),
    ]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    folder = tmp_path_factory.mktemp("compared")
    before = a_benchmark(*EXAM.items.values(), a_question("q99"))
    old = taken("demo/a", "old", benchmark=before, hour=9)
    a_journal(folder, *graded(old, [0.0] * (ITEMS + 1)), benchmark=before)
    now_loaded = a_benchmark(
        *EXAM.items.values(), loaded_at=before.version.loaded_at.replace(hour=13)
    )
    records = [*the_records(the_standings()), *never_compared()]
    return published(folder, *records, benchmark=now_loaded)


@pytest.fixture(scope="module")
def found(warehouse: Warehouse) -> list[Row]:
    return rows(warehouse, "from comparisons")


def sides_of(row: Row) -> tuple[Standing, Standing]:
    by = {(one.judge, one.model, one.experiment): one for one in the_standings()}
    judge = row["judge"], row["judge_version"]
    a, b = (by[judge, row[f"model_{side}"], row[f"experiment_{side}"]] for side in "ab")
    return a, b


def chance_of_flips(differences: "pd.Series[float]") -> float:
    """The share of all choices of signs that give a sum as far from 0; in steps of a sixth."""
    steps = (differences * 6).round().astype(int).abs()
    sums: Counter[int] = Counter({0: 1})
    for step in steps.tolist():
        grown: Counter[int] = Counter()
        for total, ways in sums.items():
            grown[total + step] += ways
            grown[total - step] += ways
        sums = grown
    total = abs(round(float(differences.sum()) * 6))
    as_far = sum(ways for one, ways in sums.items() if abs(one) >= total)
    return float(as_far / 2 ** len(steps))


def the_numbers(a: Standing, b: Standing) -> Mapping[str, object]:
    """The comparison by other means."""
    both = pd.concat([item_means(a.runs), item_means(b.runs)], axis=1, join="inner")
    both.columns = pd.Index(["a", "b"])
    difference = both["a"] - both["b"]
    better, worse = int((difference > 0.01).sum()), int((difference < -0.01).sum())
    single = a.replies == b.replies == 1
    exact = mcnemar([[0, better], [worse, 0]], exact=True).pvalue if better + worse else 1.0
    clusters = pd.factorize(ABOUT["cluster"].loc[both.index])[0]
    fit = sm.OLS(difference, np.ones(len(both))).fit(
        cov_type="cluster", cov_kwds={"groups": clusters}
    )
    return {
        "items": len(both),
        "accuracy_a": both["a"].mean(),
        "accuracy_b": both["b"].mean(),
        "difference": difference.mean(),
        "standard_error": sem(difference),
        "standard_error_clustered": fit.bse.iloc[0],
        "better": better,
        "worse": worse,
        "test": "mcnemar" if single else "sign_flip",
        "p_value": exact if single else chance_of_flips(difference),
    }


def test_every_comparison_has_the_numbers_of_other_implementations(found: list[Row]) -> None:
    for row in found:
        expected = the_numbers(*sides_of(row))
        numbers = {name: row[name] for name in expected}
        assert numbers == pytest.approx(expected, abs=1e-9), (row["model_a"], row["model_b"])
        near = 0.5 * row["standard_error"] + 1 / row["items"]
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
        for end, sign in (("low", -1), ("high", 1)):
            normal = row["difference"] + sign * 1.96 * row["standard_error"]
            assert row[f"difference_{end}"] == pytest.approx(normal, abs=near)
            assert row[f"bootstrap_{end}"] == pytest.approx(normal, abs=near)
        level = norm.isf(0.025 / row["pairs"]) + norm.isf(0.2)
        assert row["detectable"] == pytest.approx(level * row["standard_error"])
    assert {row["test"] for row in found} == {"mcnemar", "sign_flip"}


def test_all_models_of_an_experiment_and_all_experiments_of_a_model_are_compared(
    found: list[Row],
) -> None:
    expected = Counter(
        (one.judge, frozenset([(one.model, one.experiment), (two.model, two.experiment)]))
        for one, two in combinations(the_standings(), 2)
        if one.judge == two.judge and (one.experiment == two.experiment or one.model == two.model)
    )

    compared = Counter(
        (
            (row["judge"], row["judge_version"]),
            frozenset((row[f"model_{side}"], row[f"experiment_{side}"]) for side in "ab"),
        )
        for row in found
    )
    assert compared == expected


def test_the_runs_of_each_side_are_named_the_latest_first(found: list[Row]) -> None:
    for row in found:
        a, b = sides_of(row)
        assert (row["run_ids_a"], row["run_ids_b"]) == (a.run_ids, b.run_ids)


def test_of_two_models_the_better_one_comes_first(found: list[Row]) -> None:
    alike = [
        row
        for row in found
        if row["family"] == "models" and "demo/text" not in (row["model_a"], row["model_b"])
    ]

    assert len(alike) > 10
    assert [row for row in alike if row["difference"] < 0] == []


def test_p_values_are_corrected_for_the_pairs_of_their_family(found: list[Row]) -> None:
    table = pd.DataFrame(found)
    experiment = table["experiment_a"].where(table["family"] == "models", "")
    keys = ["judge", "judge_version", "family", experiment.rename("within")]

    families = [group for _, group in table.groupby(keys)]

    # By the first judge 7 models make 21 pairs, 2 hot ones 1, and 2 models have both experiments.
    assert sorted(len(group) for group in families) == [1, 1, 2, 3, 21]
    for group in families:
        adjusted = holm_of_statsmodels(group["p_value"])
        assert group["p_adjusted"].to_numpy() == pytest.approx(adjusted)
        assert group["pairs"].unique().tolist() == [len(group)]
    assert (table["significant"] == (table["p_adjusted"] < 0.05)).all()
    assert 0 < table["significant"].sum() < len(table)


def test_only_items_in_common_are_compared(found: list[Row]) -> None:
    with_text = {row["items"] for row in found if "demo/text" in (row["model_a"], row["model_b"])}
    others = {row["items"] for row in found if "demo/text" not in (row["model_a"], row["model_b"])}

    assert (with_text, others) == ({len(TEXT)}, {ITEMS})


def test_what_is_of_another_version_incomplete_filtered_or_not_judged_is_never_compared(
    warehouse: Warehouse, found: list[Row]
) -> None:
    graded_runs = rows(warehouse, "select distinct model, run_id, benchmark_version from metrics")
    left_out = {"demo/lacking", "demo/filtered", "demo/unjudged"}

    assert left_out <= {row["model"] for row in graded_runs}
    assert ("demo/a", "old") in {(row["model"], row["run_id"]) for row in graded_runs}
    assert not left_out & {row[f"model_{side}"] for row in found for side in "ab"}
    assert "old" not in {run for row in found for run in row["run_ids_a"] + row["run_ids_b"]}
    assert len({row["benchmark_version"] for row in found}) == 1


def test_the_same_journal_gives_the_same_rows(warehouse: Warehouse, found: list[Row]) -> None:
    board = rows(warehouse, "from leaderboard order by all")

    warehouse.publish(force=True)

    assert rows(warehouse, "from comparisons") == found
    assert rows(warehouse, "from leaderboard order by all") == board


def test_at_most_the_latest_ten_runs_of_a_model_are_compared(tmp_path: Path) -> None:
    many = [
        (taken("demo/many", f"run-{n:02}", hour=n), scores_of(0.1 + n / 20, seed=n))
        for n in range(12)
    ]
    one = taken("demo/one"), scores_of(0.1, seed=99)
    records = [record for run, scores in [*many, one] for record in graded(run, scores)]

    warehouse = published(tmp_path, *records, benchmark=EXAM)

    (row,) = rows(warehouse, "from comparisons")
    latest = Standing(FIRST, "demo/many", "default", many[:1:-1])
    assert row["run_ids_a"] == [f"run-{n:02}" for n in range(11, 1, -1)]
    assert row["accuracy_a"] == pytest.approx(item_means(latest.runs).mean())
    assert (row["test"], row["run_ids_b"]) == ("sign_flip", ["run-1"])


@pytest.mark.parametrize(
    ("latest", "counted"),
    [
        ({}, ["last", "alike"]),
        ({"parameters": {"temperature": 1}}, ["last", "other"]),
        ({"samples": 2}, ["last"]),
        ({"scope": "text"}, ["alike"]),
        ({"scope": "filtered"}, ["alike"]),
    ],
)
def test_only_runs_that_asked_in_the_same_way_as_the_latest_are_put_together(
    tmp_path: Path, latest: dict[str, Any], counted: list[str]
) -> None:
    is_part = latest.get("scope") in {"text", "filtered"}
    last = taken("demo/a", "last", hour=3, plan=TEXT if is_part else None, **latest)
    runs = [
        last,
        taken("demo/a", "other", hour=2, parameters={"temperature": 1}),
        taken("demo/a", "alike", hour=2.5 if is_part else 1),
        taken("demo/b"),
    ]
    records = [record for run in runs for record in graded(run, [1.0] * run.planned)]

    warehouse = published(tmp_path, *records, benchmark=EXAM)

    (row,) = rows(warehouse, "from comparisons")
    assert row["run_ids_a"] == counted


def test_a_cluster_that_a_suite_names_counts_as_a_whole(tmp_path: Path) -> None:
    exam = a_benchmark(*(a_question(f"q{n:02}", cluster=f"c{n // 4}") for n in range(ITEMS)))
    first, second = taken("demo/a", benchmark=exam), taken("demo/b", benchmark=exam)
    better = [1.0] * 12 + [0.0] * (ITEMS - 12)  # on all of three clusters out of ten

    warehouse = published(
        tmp_path, *graded(first, better), *graded(second, [0.0] * ITEMS), benchmark=exam
    )

    (row,) = rows(warehouse, "from comparisons")
    assert (row["test"], row["significant"]) == ("sign_flip", False)
    assert row["p_value"] == pytest.approx(0.25)
    assert row["standard_error"] == row["standard_error_clustered"]
    assert row["difference_low"] == 0
    assert [one["ties"] for one in rows(warehouse, "from leaderboard")] == ["A", "A"]
