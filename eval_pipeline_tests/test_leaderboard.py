"""The leaderboard: whose runs are on it, means and spread, ranks and ties, what is left out."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from eval_pipeline.hashing import fingerprint
from eval_pipeline.journal import SIGHTINGS
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Usage
from eval_pipeline.records.run import Run
from eval_pipeline.results.queries import query
from eval_pipeline.results.queries import rows as records
from eval_pipeline.results.tables.leaderboard import leaderboard_tables
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline_tests.boards import (
    ABOUT,
    EXAM,
    ITEMS,
    TEXT,
    Records,
    Scores,
    answers,
    by_category,
    graded,
    item_means,
    scores_of,
    taken,
    verdicts,
)
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    a_task,
    graded_code,
)
from eval_pipeline_tests.test_metrics import Row, a_run_of_four, answered, published, rows

LATER = NOON + timedelta(hours=1)
OWN, TRIAL = EXAM.version.judge_prompt_hash, fingerprint("a prompt on trial")


def board(folder: Path, *records: Any) -> Warehouse:
    return published(folder, *records, benchmark=EXAM)


def all_graded(runs: Sequence[tuple[Run, Scores]]) -> Records:
    return [record for run, scores in runs for record in graded(run, scores)]


def test_models_are_ranked_by_the_mean_of_their_complete_runs(tmp_path: Path) -> None:
    before = a_benchmark(a_question("old"), loaded_at=NOON - timedelta(days=1))
    past = a_run(plan=before.items, benchmark_version=before.version.benchmark_version)
    a_journal(tmp_path, *answered(past, 1), benchmark=before)
    latest = NOON + timedelta(hours=2)

    warehouse = published(
        tmp_path,
        *answered(a_run_of_four("first", "demo/a"), 1, 1, 0, 0),
        *answered(a_run_of_four("second", "demo/a", opened_at=LATER), 1, 0, 0, 1),
        *answered(a_run_of_four("part", "demo/a", opened_at=latest), 1, 1),
        *answered(a_run_of_four("few", "demo/a", items=1, scope="filtered", opened_at=latest), 1),
        *answered(a_run_of_four("hot", "demo/a", experiment="hot"), 0, 0, 0, 0),
        *answered(a_run_of_four("tie", "demo/b"), 1, 1, 0, 0),
        *answered(a_run_of_four("worse", "demo/c"), 1, 0, 0, 0),
        *answered(a_run_of_four("text", "demo/d", items=3, scope="text"), 1, 1, 1),
    )

    columns = "experiment, scope, rank, model, runs, run_id, accuracy, round(text_accuracy, 2)"
    ranked = rows(warehouse, f"select {columns} from leaderboard order by all")
    assert [tuple(row.values()) for row in ranked] == [
        ("default", "full", 1, "demo/a", 2, "second", 0.5, 0.5),
        ("default", "full", 1, "demo/b", 1, "tie", 0.5, 0.67),
        ("default", "full", 3, "demo/c", 1, "worse", 0.25, 0.33),
        ("default", "text", 1, "demo/d", 1, "text", 1.0, 1.0),
        ("hot", "full", 1, "demo/a", 1, "hot", 0.0, 0.0),
    ]


def test_the_numbers_are_those_of_the_latest_ten_runs(tmp_path: Path) -> None:
    taken_runs = {
        f"demo/{runs}-{samples}": [
            (
                taken(f"demo/{runs}-{samples}", f"run-{n:02}", hour=n, samples=samples),
                scores_of(0.2 + n / 20, seed=n, samples=samples),
            )
            for n in range(runs)
        ]
        for runs, samples in [(1, 1), (2, 1), (12, 1), (3, 2)]
    }

    warehouse = board(tmp_path, *all_graded([one for runs in taken_runs.values() for one in runs]))

    found = rows(warehouse, "from leaderboard")
    assert {row["model"] for row in found} == taken_runs.keys()
    for row in found:
        check_numbers(row, taken_runs[row["model"]][::-1][:10])


def test_the_cost_is_that_of_one_sample_of_every_item(tmp_path: Path) -> None:
    run = taken("demo/a", samples=2)
    paid = [one.model_copy(update={"usage": Usage(cost_usd=0.25)}) for one in answers(run)]

    warehouse = board(tmp_path, run, *paid, *verdicts(run, scores_of(0.5, seed=1, samples=2)))

    (row,) = rows(warehouse, "from leaderboard")
    assert row["cost_usd"] == pytest.approx(0.25 * ITEMS)


def check_numbers(row: Row, latest: Sequence[tuple[Run, Scores]]) -> None:
    means, newest = item_means(latest), latest[0][0]
    accuracies = [scores.mean() for _, scores in latest]
    assert row["run_ids"] == [run.run_id for run, _ in latest]
    assert row["run_id"] == newest.run_id
    assert row["opened_at"] == newest.opened_at.replace(tzinfo=None)
    assert (row["runs"], row["samples"]) == (len(latest), newest.samples)
    assert row["judged"] == ITEMS
    assert row["accuracy"] == pytest.approx(means.mean())
    assert row["text_accuracy"] == pytest.approx(means[ABOUT["is_text"]].mean())
    assert row["category_accuracy"] == pytest.approx(by_category(means))
    spread = pytest.approx(np.std(accuracies, ddof=1)) if len(latest) > 1 else None
    assert row["standard_deviation"] == spread


def test_the_interval_of_a_single_run_is_that_of_its_metrics(tmp_path: Path) -> None:
    of_models = [
        scores_of(0.6, seed=1),
        scores_of(0.6, seed=2, samples=3),
        np.ones((ITEMS, 1)),
        np.zeros((ITEMS, 2)),
        np.full((ITEMS, 1), 0.5),
        np.linspace(0, 1, ITEMS)[:, np.newaxis],
        np.tile([1.0, 0.0], (ITEMS, 1)),
    ]
    runs = [
        (taken(f"demo/{n}", samples=scores.shape[1]), scores) for n, scores in enumerate(of_models)
    ]

    warehouse = board(tmp_path, *all_graded(runs))

    interval = "select accuracy, accuracy_low, accuracy_high from"
    shown = rows(warehouse, f"{interval} leaderboard order by model")
    measured = rows(warehouse, f"{interval} metrics where slice = 'all' order by model")
    assert len(shown) == len(of_models)
    assert shown == [pytest.approx(row, abs=1e-11) for row in measured]


def test_the_interval_of_three_runs_is_that_of_three_samples(tmp_path: Path) -> None:
    scores = scores_of(0.6, seed=3, samples=3)
    runs = [(taken("demo/runs", f"run-{n}", hour=n), scores[:, [n]]) for n in range(3)]
    sampled = taken("demo/samples", samples=3), scores

    warehouse = board(tmp_path, *all_graded([*runs, sampled]))

    numbers = "select accuracy, accuracy_low, accuracy_high, judged from leaderboard"
    first, second = rows(warehouse, f"{numbers} order by model")
    one = rows(board(tmp_path / "one", *graded(*runs[0])), numbers)[0]
    assert first == pytest.approx(second)
    assert (
        first["accuracy_high"] - first["accuracy_low"] < one["accuracy_high"] - one["accuracy_low"]
    )


def test_slices_are_the_leaderboard_over_a_suite_or_a_category(tmp_path: Path) -> None:
    runs = [
        *[(taken("demo/a", f"run-{n}", hour=n), scores_of(0.7, seed=n)) for n in range(3)],
        (taken("demo/b", samples=2), scores_of(0.4, seed=9, samples=2)),
    ]

    warehouse = board(tmp_path, *all_graded(runs))

    numbers = "model, judged, accuracy, accuracy_low, accuracy_high"
    whole = f"select {numbers} from leaderboard_slices where category is null order by model"
    assert rows(warehouse, whole) == [
        pytest.approx(row)
        for row in rows(warehouse, f"select {numbers} from leaderboard order by 1")
    ]
    for model in ("demo/a", "demo/b"):
        means = item_means([one for one in runs if one[0].model == model])
        found = rows(
            warehouse,
            f"from leaderboard_slices where category is not null and model = '{model}'",
        )
        assert {row["category"]: row["accuracy"] for row in found} == pytest.approx(
            by_category(means)
        )
        assert sum(row["judged"] for row in found) == ITEMS


def test_the_interval_of_a_slice_of_one_run_is_that_of_its_metrics(tmp_path: Path) -> None:
    warehouse = board(
        tmp_path, *graded(taken("demo/a", samples=2), scores_of(0.6, seed=4, samples=2))
    )

    numbers = "select suite, category, accuracy, accuracy_low, accuracy_high from"
    found = rows(warehouse, f"{numbers} leaderboard_slices where category is not null order by 2")
    measured = rows(warehouse, f"{numbers} metrics where slice = 'category' order by 2")
    assert found == [pytest.approx(row, abs=1e-11) for row in measured]


def test_costs_are_per_run_and_times_are_means_of_all_replies(tmp_path: Path) -> None:
    records: Records = []
    for number, (cents, seconds) in enumerate([(1, 2.0), (3, 6.0)]):
        run = taken("demo/a", f"run-{number}", hour=number)
        usage = Usage(cost_usd=cents / 100, cost_estimated=number == 0)
        told = {"usage": usage, "latency_s": seconds, "generation_s": seconds / 2}
        records += [run, *answers(run, **told), *verdicts(run, scores_of(0.5, seed=number))]

    (row,) = rows(board(tmp_path, *records), "from leaderboard")

    expected = {
        "cost_usd": ITEMS * (0.01 + 0.03) / 2,
        "cost_estimated": True,
        "latency_p50_s": 4.0,
        "mean_latency_s": 4.0,
        "mean_generation_s": 2.0,
    }
    assert {name: row[name] for name in expected} == pytest.approx(expected)


def test_the_calibration_error_is_that_of_the_latest_run_even_if_it_has_none(
    tmp_path: Path,
) -> None:
    first, last = (taken("demo/a", f"run-{n}", hour=n, samples=3) for n in range(2))
    ones = np.ones((ITEMS, 3))

    before = board(tmp_path / "one", *graded(first, ones, confidence=0.8))
    after = board(tmp_path / "two", *graded(first, ones, confidence=0.8), *graded(last, ones))

    error = "select run_id, calibration_error from leaderboard"
    assert rows(before, error) == [
        {"run_id": "run-0", "calibration_error": pytest.approx(0.2, abs=1e-9)}
    ]
    assert rows(after, error) == [{"run_id": "run-1", "calibration_error": None}]


def test_models_share_a_letter_if_and_only_if_they_can_not_be_told_apart(tmp_path: Path) -> None:
    skills = [0.95, 0.85, 0.8, 0.55, 0.5, 0.1]
    runs = [(taken(f"demo/{n}"), scores_of(skill, seed=n)) for n, skill in enumerate(skills)]

    warehouse = board(tmp_path, *all_graded(runs))

    standing = {row["model"]: row for row in rows(warehouse, "from leaderboard")}
    pairs = rows(warehouse, "select model_a, model_b, significant from comparisons")
    beaten = {(row["model_a"], row["model_b"]) for row in pairs if row["significant"]}
    assert 0 < len(beaten) < len(pairs) == len(list(combinations(skills, 2)))
    for a, b in ((row["model_a"], row["model_b"]) for row in pairs):
        share = set(standing[a]["ties"]) & set(standing[b]["ties"])
        assert bool(share) == ((a, b) not in beaten)
    for name, row in standing.items():
        better = sum(loser == name for _, loser in beaten)
        worse = sum(winner == name for winner, _ in beaten)
        assert (row["rank_low"], row["rank_high"]) == (1 + better, len(skills) - worse)
        assert row["rank_low"] <= row["rank"] <= row["rank_high"]


def test_failures_and_incomplete_runs_are_counted_and_are_never_wrong_answers(
    tmp_path: Path,
) -> None:
    whole, part, unjudged = (taken("demo/a", f"run-{n}", hour=n) for n in range(3))
    filtered = taken("demo/a", "few", hour=4, plan=TEXT[:3], scope="filtered")
    failures = [
        a_prediction(key.item_id, run_id=part.run_id, model=part.model, outcome="timeout")
        for key in part.plan[:5]
    ]
    judged = [one for one in answers(part) if one.item_id > "q04"]

    warehouse = board(
        tmp_path,
        *graded(whole, np.ones((ITEMS, 1))),
        *[part, *failures, *judged, *(a_judgement(one, 0.0) for one in judged)],
        *[unjudged, *answers(unjudged)],
        *graded(filtered, [0.0, 0.0]),
    )

    (row,) = rows(warehouse, "from leaderboard")
    assert (row["accuracy"], row["run_ids"]) == (1.0, ["run-0"])
    assert (row["incomplete_runs"], row["failed_replies"]) == (2, 5)
    with warehouse.reading() as db:
        left_out = query(db, "summaries/left_out").fetchall()
    assert left_out == [("demo/a", "default", "few", "1 not judged")]


def test_a_run_that_one_judge_could_not_finish_is_left_out_for_that_judge_only(
    tmp_path: Path,
) -> None:
    first, second = (taken("demo/a", f"run-{n}", hour=n) for n in range(2))
    ones, other = np.ones((ITEMS, 1)), {"judge": "other/judge"}

    warehouse = board(
        tmp_path,
        *[*graded(first, ones), *graded(second, ones)],
        *verdicts(first, ones, **other),
        *verdicts(second, [1.0] * (ITEMS - 1), **other, finished_at=LATER),
    )

    columns = "judge, runs, incomplete_runs"
    found = rows(warehouse, f"select {columns} from leaderboard order by judge")
    assert [tuple(row.values()) for row in found] == [("demo/judge", 2, 0), ("other/judge", 1, 1)]
    with warehouse.reading() as db:
        assert query(db, "summaries/left_out").fetchall() == []


def test_each_judge_has_a_leaderboard_of_its_own(tmp_path: Path) -> None:
    a, b = taken("demo/a"), taken("demo/b")
    right, wrong = np.ones((ITEMS, 1)), np.zeros((ITEMS, 1))
    other = {"judge": "other/judge"}

    warehouse = board(
        tmp_path,
        *[*graded(a, right), *graded(b, wrong)],
        *[*verdicts(a, wrong, **other), *verdicts(b, right, **other)],
    )

    columns = "judge, rank, rank_low, rank_high, ties, model, accuracy"
    found = rows(warehouse, f"select {columns} from leaderboard order by all")
    assert [tuple(row.values()) for row in found] == [
        ("demo/judge", 1, 1, 1, "A", "demo/a", 1.0),
        ("demo/judge", 2, 2, 2, "B", "demo/b", 0.0),
        ("other/judge", 1, 1, 1, "A", "demo/b", 1.0),
        ("other/judge", 2, 2, 2, "B", "demo/a", 0.0),
    ]
    with warehouse.reading() as db:
        tables = list(leaderboard_tables(records(query(db, "summaries/leaderboard"))))
    titles = [table.title for table in tables]
    assert [title.rpartition(", ")[2] for title in titles] == [
        "judged by demo/judge",
        "judged by other/judge",
    ]
    assert all("SIMULATED" in title for title in titles)


class Version(NamedTuple):
    """A version of the judge: its prompt, how many models it scored as a whole, and when."""

    prompt: str | None
    models: int
    hour: int


CHOICES: Sequence[tuple[Mapping[str, Version], str]] = [
    ({"a": Version(OWN, 1, 0), "b": Version(TRIAL, 1, 9)}, "a"),
    ({"a": Version(OWN, 1, 0), "b": Version(TRIAL, 3, 9)}, "a"),
    ({"a": Version(None, 1, 0), "b": Version(TRIAL, 3, 9)}, "a"),
    ({"a": Version(OWN, 2, 0), "b": Version(OWN, 1, 9)}, "a"),
    ({"a": Version(None, 2, 0), "b": Version(OWN, 1, 9)}, "a"),
    ({"a": Version(OWN, 2, 9), "b": Version(OWN, 2, 0)}, "a"),
    ({"a": Version(OWN, 2, 0), "b": Version(OWN, 2, 9)}, "b"),
    ({"a": Version(OWN, 0, 9), "b": Version(OWN, 1, 0)}, "b"),
    ({"a": Version(TRIAL, 2, 0), "b": Version(TRIAL, 1, 9)}, "a"),
    ({"a": Version(OWN, 0, 9), "b": Version(TRIAL, 1, 0)}, "b"),
    ({"a": Version(TRIAL, 3, 5), "b": Version(OWN, 1, 0), "c": Version(OWN, 2, 0)}, "c"),
]


@pytest.fixture(scope="module")
def chosen(tmp_path_factory: pytest.TempPathFactory) -> Warehouse:
    """A board with a judge for each of the choices, each with several versions."""
    runs = [taken(f"demo/{n}") for n in range(3)]
    records: Records = [*runs, *(reply for run in runs for reply in answers(run))]
    for number, (versions, _) in enumerate(CHOICES):
        for name, (prompt, models, hour) in versions.items():
            told = {"judge": f"judge/{number}", "judge_version": name, "prompt_hash": prompt}
            at = {"finished_at": NOON + timedelta(hours=hour)}
            for place, run in enumerate(runs):
                scored = ITEMS if place < models else ITEMS - 1
                records += verdicts(run, [1.0] * scored, **told, **at)
    return board(tmp_path_factory.mktemp("chosen"), *records)


@pytest.mark.parametrize("number", range(len(CHOICES)))
def test_of_each_judge_one_version_is_official_and_that_is_printed(
    chosen: Warehouse, number: int
) -> None:
    (versions, official), by = CHOICES[number], f"judge = 'judge/{number}'"

    with chosen.reading() as db:
        printed = query(db, "summaries/leaderboard").filter(by)
        models = [model for (model,) in printed.project("model").fetchall()]
        shown = set(printed.project("judge_version").fetchall())
        compared = query(db, "summaries/comparisons").filter(by).fetchall()
        named = query(db, "summaries/left_out").filter(f"ends_with(reason, ' judge/{number}')")
        left_out = [row[0] for row in named.fetchall()]

    assert shown == {(official,)}
    assert len(models) == versions[official].models
    assert len(compared) == len(list(combinations(models, 2)))
    # The table has the other versions too, and who is only there is told why.
    found = rows(chosen, f"select judge_version, is_official from leaderboard where {by}")
    assert sorted(tuple(row.values()) for row in found) == [
        (name, name == official) for name, one in versions.items() for _ in range(one.models)
    ]
    most = max(one.models for one in versions.values())
    assert sorted([*models, *left_out]) == [f"demo/{n}" for n in range(most)]


def test_each_judge_has_an_official_version_of_its_own(tmp_path: Path) -> None:
    run, ones = taken("demo/a"), np.ones((ITEMS, 1))
    trial = {"prompt_hash": TRIAL, "judge_version": "trial"}

    warehouse = board(
        tmp_path,
        *graded(run, ones, prompt_hash=OWN),
        *verdicts(run, ones, **trial, finished_at=LATER),
        *verdicts(run, ones, **trial, judge="other/judge"),
        *verdicts(run, ones, judge="rules", judge_version="r1"),
    )

    found = rows(warehouse, "select judge, judge_version from leaderboard where is_official")
    assert {tuple(row.values()) for row in found} == {
        ("demo/judge", "v1"),
        ("other/judge", "trial"),
        ("rules", "r1"),
    }


def test_no_model_is_dropped_without_a_word(tmp_path: Path) -> None:
    ones, trial = np.ones((ITEMS, 1)), {"prompt_hash": TRIAL, "judge_version": "trial"}
    own = {"prompt_hash": OWN}
    old, new = (taken("demo/later", f"run-{n}", hour=n) for n in range(2))
    whole = taken("demo/part", "whole")
    few = taken("demo/part", "few", hour=1, plan=TEXT[:3], scope="filtered")
    both, begun = taken("demo/both"), taken("demo/begun")
    hot = taken("demo/both", "hot-run", experiment="hot")
    warm = taken("demo/both", "hot-few", hour=1, experiment="hot", plan=TEXT[:3], scope="filtered")

    warehouse = board(
        tmp_path,
        *[*graded(both, ones, **own), *verdicts(both, ones, **trial, finished_at=LATER)],
        *[*graded(hot, ones, **trial), *graded(warm, [1.0] * 3, **own)],
        *graded(taken("demo/trial", "only-trial"), ones, **trial),
        *[*graded(old, ones, **own), *graded(new, ones, **trial)],
        *[*graded(whole, ones, **trial), *graded(few, [1.0] * 3, **own)],
        *[*graded(begun, ones, **trial), *verdicts(begun, [1.0] * 3, **own, finished_at=LATER)],
    )

    with warehouse.reading() as db:
        printed = query(db, "summaries/leaderboard").df()["model"].tolist()
        left_out = query(db, "summaries/left_out").fetchall()
    reason = "judged only with another prompt or limit of demo/judge"
    assert sorted(printed) == ["demo/both", "demo/later"]
    assert left_out == [
        ("demo/begun", "default", "run-1", reason),
        ("demo/both", "hot", "hot-few", "only a part was asked"),
        ("demo/both", "hot", "hot-run", reason),
        ("demo/later", "default", "run-1", reason),
        ("demo/part", "default", "few", "only a part was asked"),
        ("demo/part", "default", "whole", reason),
        ("demo/trial", "default", "only-tri", reason),
    ]


def test_who_is_missing_on_the_board_of_one_judge_is_named_with_that_judge(tmp_path: Path) -> None:
    a, b = taken("demo/a"), taken("demo/b")
    ones, other = np.ones((ITEMS, 1)), {"judge": "other/judge"}
    trial = {**other, "prompt_hash": TRIAL, "judge_version": "trial"}

    warehouse = board(
        tmp_path,
        *[*graded(a, ones), *verdicts(a, ones, **other, prompt_hash=OWN)],
        *[*graded(b, ones), *verdicts(b, ones, **trial)],
    )

    with warehouse.reading() as db:
        left_out = query(db, "summaries/left_out").fetchall()
    reason = "judged only with another prompt or limit of other/judge"
    assert left_out == [("demo/b", "default", "run-1", reason)]


def test_the_title_names_the_judge_even_if_there_is_only_one(tmp_path: Path) -> None:
    warehouse = board(tmp_path, *graded(taken("demo/a"), np.ones((ITEMS, 1)), judge="[my]/judge"))

    with warehouse.reading() as db:
        printed = records(query(db, "summaries/leaderboard"))
    (table,) = leaderboard_tables(printed)

    assert table.title == (
        "Leaderboard of SIMULATED models (their skill is invented), judged by [my]/judge"
    )


def test_categories_of_the_same_name_in_two_suites_are_not_merged(tmp_path: Path) -> None:
    exam = a_benchmark(
        *(a_question(f"q{n}", suite="one", category="Math") for n in range(2)),
        *(a_question(f"q{n}", suite="two", category="Math") for n in range(4)),
        a_question("q9", suite="two", category="Physics"),
    )
    run = taken("demo/a", benchmark=exam)

    warehouse = published(tmp_path, *graded(run, [1.0, 1.0, 0, 0, 0, 1.0, 1.0]), benchmark=exam)

    (row,) = rows(warehouse, "select category_accuracy from leaderboard")
    assert row["category_accuracy"] == {"one/Math": 1.0, "two/Math": 0.25, "two/Physics": 1.0}


def test_names_follow_the_catalog_without_anything_being_computed(tmp_path: Path) -> None:
    warehouse = board(tmp_path, *graded(taken("demo/a"), scores_of(0.5, seed=1)))
    (unnamed,) = rows(warehouse, "from leaderboard")
    sighting = Sighting(
        model=a_model("demo/a", display_name="A by Demo"), selected=True, seen_at=NOON
    )
    warehouse.journal.write_whole(SIGHTINGS, "now", records=[sighting])
    a_journal(tmp_path, *graded(taken("demo/b"), scores_of(0.9, seed=2)), benchmark=EXAM)

    warehouse.publish(SIGHTINGS)

    # Had it been computed, the other model would be on it too.
    (named,) = rows(warehouse, "from leaderboard")
    assert unnamed["display_name"] is None
    assert named == {**unnamed, "display_name": "A by Demo"}
    warehouse.publish()
    names = rows(warehouse, "select model, display_name from leaderboard order by model")
    assert [tuple(row.values()) for row in names] == [("demo/a", "A by Demo"), ("demo/b", None)]


def test_code_is_counted_once_however_many_judges_a_run_has(tmp_path: Path) -> None:
    both = a_benchmark(a_question("q1"), a_task())
    run = taken("demo/a", benchmark=both)
    question, code = answers(run)
    told = [
        verdict
        for name in ("demo/judge", "other/judge")
        for verdict in (
            a_judgement(question, judge=name),
            a_judgement(code, 0.0, judge=name, code=graded_code(), graded_by="steps"),
        )
    ]

    with published(tmp_path, run, question, code, *told, benchmark=both).reading() as db:
        (row,) = query(db, "summaries/steps").df().to_dict("records")

    assert (row["model"], row["graded"], row["passed"], row["tests"]) == ("demo/a", 1, 0, 1)
    assert row["tests_passed_share"] == 0.5
