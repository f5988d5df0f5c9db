"""How far judges can be trusted: the measures, the report, and the asset that makes them."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import dagster as dg
import duckdb
import krippendorff
import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

from eval_pipeline.defs.config import ReliabilityConfig
from eval_pipeline.gateways.demo.faults import Faults
from eval_pipeline.gateways.demo.server import DemoGateway
from eval_pipeline.journal import LABELS, REJUDGED, SIGHTINGS
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Label, Repeat
from eval_pipeline.results.build import derive
from eval_pipeline.results.schema import create_schema
from eval_pipeline.results.tables.reliability import Report
from eval_pipeline.results.warehouse import Warehouse
from eval_pipeline.settings.loading import SettingsError
from eval_pipeline_tests.builders import (
    NOON,
    a_benchmark,
    a_journal,
    a_judgement,
    a_model,
    a_prediction,
    a_question,
    a_run,
    settings_in,
)
from eval_pipeline_tests.test_pipeline import Graph

Scores = Sequence[float | None]
Row = dict[str, Any]


class Court:
    """One run of one model, with whatever judges and people say about its replies."""

    def __init__(self, replies: int, model: str = "demo/strong") -> None:
        names = [f"q{number}" for number in range(replies)]
        self.benchmark = a_benchmark(*(a_question(name) for name in names))
        self.replies = [a_prediction(name, model=model) for name in names]
        self.run = a_run(
            model=model,
            plan=[("sample", name) for name in names],
            benchmark_version=self.benchmark.version.benchmark_version,
        )
        self.judgements: list[Judgement] = []
        self.repeats: list[Repeat] = []
        self.labels: list[Label] = []

    def judge(self, judge: str, scores: Scores, **changes: object) -> None:
        pairs = zip(self.replies, scores, strict=True)
        self.judgements += [a_judgement(one, said, judge=judge, **changes) for one, said in pairs]

    def repeat(self, judge: str, number: int, scores: Scores) -> None:
        for reply, score in zip(self.replies, scores, strict=True):
            verdict = a_judgement(reply, score, judge=judge)
            self.repeats.append(Repeat(**dict(verdict), repeat=number))

    def label(self, labels: Mapping[int, bool], labeller: str | None = None) -> None:
        for number, correct in labels.items():
            self.labels.append(
                Label(
                    line=len(self.labels) + 2,
                    item_id=f"q{number}",
                    model=self.run.model,
                    correct=correct,
                    labeller=labeller,
                )
            )

    def rows(self, db: duckdb.DuckDBPyConnection, measure: str) -> list[Row]:
        """The rows of one measure, from tables that hold what was said here and nothing else."""
        for table in ("judged", "rejudged", "human_labels", "runs"):
            db.execute(f"delete from {table}")
        insert(db, "runs", [{**self.run.model_dump(mode="json"), "planned": 0}])
        insert(db, "judged", [dict(one) for one in self.judgements])
        insert(db, "rejudged", [dict(one) for one in self.repeats])
        meant = {one.item_id: one.prediction_id for one in self.replies}
        about = [{"prediction_ids": [meant[one.item_id]]} | dict(one) for one in self.labels]
        insert(db, "human_labels", about)
        derive(db, "judge_reliability")
        found = db.sql(f"select * from judge_reliability where measure = '{measure}' order by all")
        return [dict(zip(found.columns, row, strict=True)) for row in found.fetchall()]

    def publish(self, folder: Path) -> Warehouse:
        """The file that the same makes by way of the journal."""
        journal = a_journal(
            folder, self.run, *self.replies, *self.judgements, benchmark=self.benchmark
        )
        journal.write_whole(REJUDGED, self.run.model, "run-1", "one", records=self.repeats)
        journal.write_whole(LABELS, f"{len(self.labels):04}", records=self.labels)
        warehouse = Warehouse(folder / "evals.duckdb", journal)
        warehouse.publish()
        return warehouse


@pytest.fixture(scope="module")
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        yield connection


def insert(db: duckdb.DuckDBPyConnection, table: str, records: Sequence[Row]) -> None:
    """Into those columns of the table that the records have; what it demands else is made up."""
    made_up = {"cost_estimated": True, "replies": 1, "answers": 1}
    columns = [name for name, *_ in db.sql(f"describe {table}").fetchall()]
    for record in records:
        row = {name: value for name, value in {**made_up, **record}.items() if name in columns}
        named = ", ".join(f'"{name}"' for name in row)
        given = [json.dumps(one) if isinstance(one, dict) else one for one in row.values()]
        marks = ", ".join("?" * len(row))
        db.execute(f"insert into {table} ({named}) values ({marks})", given)


def chance(count: int, share: float, seed: int, missing: float = 0.0) -> list[float | None]:
    luck = np.random.default_rng(seed)
    return [None if luck.random() < missing else float(luck.random() < share) for _ in range(count)]


def numbers(row: Row, *names: str) -> list[Any]:
    return [row[name] for name in names]


def test_what_was_never_measured_has_no_row(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(3, model="acme/one")
    court.judge("demo/judge", [1, 0, None])

    for measure in ("repeats", "between judges", "people", "own family"):
        assert court.rows(db, measure) == []


def test_the_flicker_rate_counts_the_first_verdict_too(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(4)
    court.judge("acme/judge", [1, 1, 0, 0])
    court.repeat("acme/judge", 1, [1, 0, 0, None])
    court.repeat("acme/judge", 2, [1, 0, None, None])

    (row,) = court.rows(db, "repeats")

    # The last reply has one verdict only; the second one of three says 1, 0, 0.
    assert numbers(row, "judge", "judge_version", "items", "verdicts") == ["acme/judge", "v1", 3, 8]
    assert row["flicker_rate"] == pytest.approx(1 / 3)
    expected = binomtest(1, 3).proportion_ci(method="wilson")
    assert numbers(row, "flicker_low", "flicker_high") == pytest.approx([*expected])
    assert row["pairwise_disagreement"] == pytest.approx((2 / 3) / 3)
    assert numbers(row, "base_rate", "rate_correct") == [0.5, 0.5]
    assert row["kappa"] is None and row["agreement"] is None


def test_a_steady_judge_does_not_flicker(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(10)
    for verdicts in (court.judge, lambda judge, scores: court.repeat(judge, 1, scores)):
        verdicts("acme/judge", [1.0] * 10)

    (row,) = court.rows(db, "repeats")

    assert numbers(row, "flicker_rate", "flicker_low", "base_rate") == [0, 0, 1]
    assert row["flicker_high"] == pytest.approx(
        binomtest(0, 10).proportion_ci(method="wilson").high
    )


@pytest.mark.parametrize("seed", range(3))
def test_two_judges_agree_as_an_independent_implementation_says(
    db: duckdb.DuckDBPyConnection, seed: int
) -> None:
    count = 80
    scores = {
        "acme/judge": chance(count, 0.7, seed, missing=0.1),
        "best/judge": chance(count, 0.6, seed + 50, missing=0.1),
    }
    court = Court(count, model="third/one")
    for judge, given in scores.items():
        court.judge(judge, given)

    (row,) = court.rows(db, "between judges")

    both = [pair for pair in zip(*scores.values(), strict=True) if None not in pair]
    one, other = np.array(both, dtype=float).T
    assert numbers(row, "judge", "other_judge") == ["acme/judge", "best/judge"]
    assert numbers(row, "items", "verdicts") == [len(both), 2 * len(both)]
    assert row["agreement"] == pytest.approx((one == other).mean())
    assert row["kappa"] == pytest.approx(cohen_kappa_score(one, other))
    assert numbers(row, "rate_correct", "other_rate_correct") == pytest.approx(
        [one.mean(), other.mean()]
    )
    pooled = np.concatenate([one, other]).mean()
    assert row["base_rate"] == pytest.approx(max(pooled, 1 - pooled))
    assert row["alpha"] is None


def test_of_three_judges_there_is_a_row_for_each_pair_and_one_for_all(
    db: duckdb.DuckDBPyConnection,
) -> None:
    count = 60
    judges = ("acme/judge", "best/judge", "core/judge")
    scores = {judge: chance(count, 0.6, 7 + n, missing=0.3) for n, judge in enumerate(judges)}
    court = Court(count, model="third/one")
    for judge, given in scores.items():
        court.judge(judge, given)

    rows = court.rows(db, "between judges")

    pairs = [(row["judge"], row["other_judge"]) for row in rows if row["other_judge"]]
    assert pairs == [(judges[0], judges[1]), (judges[0], judges[2]), (judges[1], judges[2])]
    (whole,) = [row for row in rows if row["judge"] == "all judges"]
    data = np.array([[math.nan if one is None else one for one in scores[j]] for j in judges])
    assert whole["alpha"] == pytest.approx(
        krippendorff.alpha(reliability_data=data, level_of_measurement="nominal")
    )
    shared = (~np.isnan(data)).sum(axis=0)
    assert whole["items"] == (shared > 1).sum()
    assert whole["verdicts"] == shared[shared > 1].sum()
    assert numbers(whole, "judge_version", "other_judge", "kappa", "agreement") == [None] * 4


def speak(court: Court, judge: str, scores: Scores, certain: Sequence[bool]) -> None:
    """The verdicts of a judge in which the rules take part where they are certain, or do not."""
    model = judge.removeprefix("rules+")
    for reply, score, sure in zip(court.replies, scores, certain, strict=True):
        grader = "rules" if sure and model != judge else model
        said = score if sure or judge != "rules" else None
        court.judgements.append(a_judgement(reply, said, judge=judge, graded_by=grader))


@pytest.mark.parametrize(
    ("judge", "other", "items"),
    [
        pytest.param("rules", "rules+acme/judge", 0, id="the rules, twice"),
        pytest.param("rules+acme/judge", "rules+best/judge", 3, id="where both models were asked"),
        pytest.param("acme/judge", "rules+acme/judge", 5, id="where the rules spoke for one"),
        pytest.param("best/judge", "rules+acme/judge", 8, id="another model, after the rules"),
        pytest.param("acme/judge", "rules", 5, id="a model and the rules"),
    ],
)
def test_two_verdicts_of_one_grader_do_not_make_judges_agree(
    db: duckdb.DuckDBPyConnection, judge: str, other: str, items: int
) -> None:
    court = Court(8, model="third/one")
    for name in (judge, other):
        speak(court, name, [1, 0, 1, 0, 1, 0, 1, 0], [True] * 5 + [False] * 3)

    rows = court.rows(db, "between judges")

    assert [row["items"] for row in rows] == ([items] if items else [])


def all_judges(court: Court, db: duckdb.DuckDBPyConnection) -> list[Row]:
    return [row for row in court.rows(db, "between judges") if row["judge"] == "all judges"]


def alpha_of(*raters: Scores) -> float:
    data = [[math.nan if one is None else one for one in scores] for scores in raters]
    return float(krippendorff.alpha(reliability_data=data, level_of_measurement="nominal"))


@pytest.mark.parametrize(
    "judges",
    [
        ("acme/judge", "best/judge", "core/judge", "rules+acme/judge"),
        ("rules", "acme/judge", "best/judge", "rules+acme/judge"),
        ("rules", "acme/judge", "best/judge", "rules+core/judge", "rules+acme/judge"),
    ],
)
def test_rules_before_a_model_are_no_judge_beside_that_model_or_the_rules(
    db: duckdb.DuckDBPyConnection, judges: Sequence[str]
) -> None:
    count = 60
    court = Court(count, model="third/one")
    certain = [one == 1 for one in chance(count, 0.5, 1)]
    scores = {judge: chance(count, 0.6, 20 + n) for n, judge in enumerate(judges)}
    for judge, given in scores.items():
        speak(court, judge, given, certain)

    (row,) = all_judges(court, db)

    if "rules" in scores:
        said = zip(scores["rules"], certain, strict=True)
        scores["rules"] = [score if sure else None for score, sure in said]
    alone = [given for judge, given in scores.items() if not judge.startswith("rules+")]
    assert row["alpha"] == pytest.approx(alpha_of(*alone))


def test_over_all_judges_the_rules_speak_once(db: duckdb.DuckDBPyConnection) -> None:
    count = 60
    court = Court(count, model="third/one")
    certain = [one == 1 for one in chance(count, 0.5, 1)]
    rules, acme, best, core = (chance(count, 0.6, 30 + n) for n in range(4))
    for judge, given in (("rules+acme/judge", acme), ("rules+best/judge", best)):
        said = zip(certain, rules, given, strict=True)
        speak(court, judge, [one if sure else other for sure, one, other in said], certain)
    speak(court, "core/judge", core, certain)

    (row,) = all_judges(court, db)

    def where(given: Scores, sure: bool) -> Scores:
        return [one if here is sure else None for one, here in zip(given, certain, strict=True)]

    raters = [where(rules, True), where(acme, False), where(best, False), core]
    assert row["alpha"] == pytest.approx(alpha_of(*raters))
    assert row["verdicts"] == sum(one is not None for given in raters for one in given)


def test_rules_a_model_and_both_together_are_two_judges(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(4, model="third/one")
    for judge in ("rules", "acme/judge", "rules+acme/judge"):
        speak(court, judge, [1, 0, 1, 0], [True, True, False, False])

    assert all_judges(court, db) == []


def test_what_can_not_be_told_is_null(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(3, model="third/one")
    for judge in ("acme/judge", "best/judge", "core/judge"):
        court.judge(judge, [1, 1, 1])
    court.label({0: True, 1: True})

    between, people = court.rows(db, "between judges"), court.rows(db, "people")

    assert {row["kappa"] for row in between} == {row["alpha"] for row in between} == {None}
    assert {row["agreement"] for row in between if row["other_judge"]} == {1}
    assert {row["base_rate"] for row in [*between, *people]} == {1}
    assert {(row["tnr"], row["tnr_low"], row["kappa"]) for row in people} == {(None, None, None)}


def test_judges_are_compared_under_the_version_at_work(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(4, model="third/one")
    court.judge("acme/judge", [1, 1, 1, 1], judge_version="old")
    later = NOON + timedelta(hours=1)
    court.judge("acme/judge", [0, 0, 0, 1], judge_version="new", finished_at=later)
    court.judge("best/judge", [0, 0, 0, 1])

    (row,) = court.rows(db, "between judges")

    assert numbers(row, "judge_version", "agreement", "kappa") == ["new", 1, 1]


def test_replies_that_nobody_graded_do_not_make_judges_agree(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(4, model="third/one")
    for judge, score in (("acme/judge", 1), ("best/judge", 0)):
        graded = [a_judgement(reply, score, judge=judge) for reply in court.replies[:2]]
        failed = [
            a_judgement(reply, 0, judge=judge, attempts=0, reason="The model refused to answer.")
            for reply in court.replies[2:]
        ]
        court.judgements += [*graded, *failed]

    (row,) = court.rows(db, "between judges")

    assert numbers(row, "items", "agreement") == [2, 0]


def test_what_was_carried_over_counts_once(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(5, model="third/one")
    for judge in ("acme/judge", "best/judge"):
        carried = [a_judgement(one, 1, judge=judge, carried_from="x") for one in court.replies[:2]]
        own = [a_judgement(one, 1, judge=judge) for one in court.replies[2:]]
        court.judgements += [*carried, *own]

    assert [row["items"] for row in court.rows(db, "between judges")] == [3]


def test_a_judge_beside_people_as_an_independent_implementation_says(
    db: duckdb.DuckDBPyConnection,
) -> None:
    count = 70
    verdicts, truth = chance(count, 0.6, 1), [one == 1 for one in chance(count, 0.5, 2)]
    court = Court(count)
    court.judge("acme/judge", verdicts)
    court.label(dict(enumerate(truth[:40])), "Ada")
    court.label(dict(enumerate(truth[40:], start=40)))

    whole, ada = sorted(court.rows(db, "people"), key=lambda row: row["labeller"] or "")

    for row, some in ((whole, slice(None)), (ada, slice(40))):
        said = [one == 1 for one in verdicts[some]]
        tn, fp, fn, tp = confusion_matrix(truth[some], said).ravel()
        assert numbers(row, "tp", "fp", "tn", "fn") == [tp, fp, tn, fn]
        assert row["tpr"] == pytest.approx(tp / (tp + fn))
        assert row["tnr"] == pytest.approx(tn / (tn + fp))
        interval = binomtest(int(tn), int(tn + fp)).proportion_ci(method="wilson")
        assert numbers(row, "tnr_low", "tnr_high") == pytest.approx([*interval])
        assert row["kappa"] == pytest.approx(cohen_kappa_score(truth[some], said))
        assert row["agreement"] == pytest.approx((tp + tn) / len(said))
        assert row["base_rate"] == pytest.approx(max(tp + fn, tn + fp) / len(said))
        assert row["items"] == len(said)
    assert numbers(whole, "labeller", "judge") == [None, "acme/judge"]
    assert ada["labeller"] == "Ada"


def test_every_judge_and_version_is_held_against_the_labels(db: duckdb.DuckDBPyConnection) -> None:
    court = Court(3)
    court.judge("acme/judge", [1, 1, 0], judge_version="old")
    court.judge("acme/judge", [1, 0, 0], judge_version="new")
    court.judge("rules", [1, None, 0], graded_by="rules")
    court.label({0: True, 1: False, 2: False})

    found = {
        (row["judge"], row["judge_version"]): numbers(row, "tp", "fp", "tn", "fn")
        for row in court.rows(db, "people")
    }

    assert found == {
        ("acme/judge", "new"): [1, 0, 2, 0],
        ("acme/judge", "old"): [1, 1, 1, 0],
        ("rules", "v1"): [1, 0, 1, 0],
    }


def test_a_judge_on_its_own_family_is_held_against_judges_of_others(
    db: duckdb.DuckDBPyConnection,
) -> None:
    court = Court(4, model="acme/one")
    court.judge("acme/judge", [1, 1, 1, 0])
    court.judge("acme/small-judge", [1, 1, 1, 1])
    court.judge("best/judge", [1, 0, 0, None])
    court.judge("core/judge", [0, 0, 1, None])

    rows = {row["judge"]: row for row in court.rows(db, "own family")}

    assert set(rows) == {"acme/judge", "acme/small-judge"}
    row = rows["acme/judge"]
    assert numbers(row, "models", "items", "rate_correct") == [["acme/one"], 4, 0.75]
    assert numbers(row, "shared_items", "shared_rate_correct") == [3, 1]
    assert row["other_rate_correct"] == pytest.approx((0.5 + 0 + 0.5) / 3)
    assert row["warning"] == (
        "acme/judge grades models of its own family (acme/one; all simulated): on 3 replies it "
        "says correct in 100.0%, judges of other families in 33.3%."
    )


@pytest.mark.parametrize(
    ("judge", "graded_by", "warned"),
    [
        ("acme/judge", "acme/judge", True),
        ("ACME/judge", None, True),
        ("rules+acme/judge", "acme/judge", True),
        ("rules+acme/judge", "rules", False),
        ("rules", "rules", False),
        ("acme-labs/judge", None, False),
        ("best/acme", None, False),
    ],
)
def test_who_is_of_the_family_is_told_by_the_vendor(
    db: duckdb.DuckDBPyConnection, judge: str, graded_by: str | None, warned: bool
) -> None:
    court = Court(2, model="acme/one")
    court.judge(judge, [1, 0], graded_by=graded_by)

    rows = court.rows(db, "own family")

    assert [row["judge"] for row in rows] == ([judge] if warned else [])
    assert [row["shared_rate_correct"] for row in rows] == [None] * len(rows)
    assert all("no judge of another family" in row["warning"] for row in rows)


def a_whole_court() -> Court:
    court = Court(30)
    for number, judge in enumerate(("demo/judge", "acme/judge", "best/judge")):
        court.judge(judge, chance(30, 0.6, number))
        court.repeat(judge, 1, chance(30, 0.6, number + 9))
    court.label({0: True, 1: False, 2: True}, "Ada")
    court.label({1: True}, "<b>[Grace](javascript:x)|")
    court.label({99: True})
    return court


def all_rows(warehouse: Warehouse) -> list[tuple[Any, ...]]:
    with warehouse.reading() as db:
        return [
            row
            for table in ("judge_reliability", "rejudged", "human_labels")
            for row in db.sql(f"select * from {table} order by all").fetchall()
        ]


def test_the_file_built_anew_has_the_same_rows(tmp_path: Path) -> None:
    warehouse = a_whole_court().publish(tmp_path)
    before = all_rows(warehouse)
    warehouse.path.unlink()

    warehouse.publish()

    assert all_rows(warehouse) == before
    assert {"repeats", "between judges", "people", "own family"} < {row[0] for row in before}


def test_what_is_added_to_the_file_is_what_a_new_file_has(tmp_path: Path) -> None:
    court = Court(6)
    court.judge("acme/judge", [1, 1, 1, 0, 0, 0])
    judged = all_rows(court.publish(tmp_path))
    court.repeat("acme/judge", 1, [1, 1, 0, 0, 0, 0])
    repeated = all_rows(court.publish(tmp_path))
    court.label({0: True, 3: True})

    warehouse = court.publish(tmp_path)

    added = all_rows(warehouse)
    assert [len(judged), len(repeated), len(added)] == [0, 1 + 6, 2 + 6 + 2]
    warehouse.publish(force=True)
    assert all_rows(warehouse) == added


def test_what_is_said_of_a_reply_that_was_replaced_does_not_count(tmp_path: Path) -> None:
    court = Court(2)
    court.judge("acme/judge", [1, 1])
    court.repeat("acme/judge", 1, [0, 0])
    court.label({0: True, 1: True})
    court.replies.append(
        a_prediction("q0", prediction_id="newer", finished_at=NOON + timedelta(hours=1))
    )

    warehouse = court.publish(tmp_path)

    with warehouse.reading() as db:
        rows = db.sql("select measure, items from judge_reliability order by measure").fetchall()
    assert rows == [("people", 1), ("repeats", 1)]


def reported(warehouse: Warehouse) -> Report:
    with warehouse.reading() as db:
        return Report.of(db, [])


def test_the_report_has_a_table_and_a_meaning_for_each_measure(tmp_path: Path) -> None:
    warehouse = a_whole_court().publish(tmp_path)
    simulated = Sighting(model=a_model("demo/judge"), selected=False, seen_at=NOON)
    warehouse.journal.write_whole(SIGHTINGS, "one", records=[simulated])
    warehouse.publish()

    report = reported(warehouse)

    page = report.page(NOON)
    assert page.startswith("# How far the judges can be trusted\n\nAs of 2025-01-01 12:00 UTC.")
    for title in ("Asked again", "Between judges", "Beside people", "Its own family"):
        assert f"\n## {title}\n\n| judge" in page
    assert page.count("worrying") == 4
    assert page.count("base rate") >= 5
    assert "| demo/judge (simulated)" in page and "SIMULATED" in page
    assert "acme/judge (simulated)" not in page
    assert "- 1 of 5 labels fit no reply that is there; they are not used." in page
    assert "- demo/judge grades models of its own family (demo/strong; all simulated)" in page
    assert r"\<b\>\[Grace\](javascript:x)\|" in page
    assert [*report.tables()] == ["repeats", "between judges", "people", "own family"]


def test_a_report_without_measures_says_how_to_get_them(tmp_path: Path) -> None:
    page = reported(Court(1).publish(tmp_path)).page(NOON)

    assert "## What to mind\n\nNothing.\n" in page
    assert "SIMULATED" not in page and "\n|" not in page
    assert "`answers` of `[reliability]` above 0" in page


def test_labels_that_may_mean_several_replies_are_told(tmp_path: Path) -> None:
    court = Court(2)
    other = a_prediction("q0", run_id="run-2", answer="41")
    a_journal(tmp_path, a_run("run-2"), other, benchmark=court.benchmark)
    court.label({0: True, 1: True})

    (warning,) = reported(court.publish(tmp_path)).warnings

    assert warning.startswith("1 of 2 labels fit several replies that are not the same text")


@pytest.mark.parametrize("given", [{"answers": -1}, {"repeats": 0}])
def test_a_launch_that_can_not_be_is_told_so(tmp_path: Path, given: dict[str, Any]) -> None:
    (field,) = given

    with pytest.raises(SettingsError, match=rf"run config: reliability\.{field}: "):
        ReliabilityConfig(**given).apply(settings_in(tmp_path))


class Materialized(NamedTuple):
    """What an asset told, and how often the judge had been asked by then."""

    told: dict[str, str]
    requests: int


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Materialized]:
    """The asset under several circumstances, one after the other in one project."""
    folder = tmp_path_factory.mktemp("project")
    items = [a_question(name) for name in ("q1", "q2", "q3")]
    found: dict[str, Materialized] = {}
    with DemoGateway(items) as gateway, dg.DagsterInstance.ephemeral() as instance:
        demo = [{"name": "demo", "kind": "demo", "base_url": gateway.base_url}]
        settings = settings_in(folder, gateways=demo, reliability={"labels": "labels.csv"})
        graph = Graph(settings, instance, checked=False)

        def materialize(name: str, asset: str, labels: str, **config: int) -> None:
            (folder / "labels.csv").write_text(f"item_id,correct,note\n{labels}")
            result = graph.run(asset, config={asset: config})
            told = metadata(result, asset) if result.success else {}
            found[name] = Materialized(told, gateway.requests["demo/judge"])

        graph.run("model_catalog")
        graph.run("predictions", partition="demo/strong")
        labels = "q1,yes,fine\nq9,no,gone\n"
        materialize("judging", "judged", labels)
        materialize("wrong labels", "judge_reliability", "q1,perhaps,\n")
        materialize("no answers", "judge_reliability", labels, answers=0)
        gateway.misbehave(Faults(flickering=1))
        materialize("first", "judge_reliability", labels, repeats=1)
        materialize("second", "judge_reliability", labels, repeats=1)
        page = (folder / "reports" / "judge_reliability.md").read_text("utf-8")
        found["page"] = Materialized({"page": page}, 0)
    return found


def metadata(result: dg.ExecuteInProcessResult, asset: str) -> dict[str, str]:
    (materialized,) = result.asset_materializations_for_node(asset)
    return {name: str(value.value) for name, value in materialized.metadata.items()}


@pytest.mark.slow
def test_the_asset_asks_again_once_and_nobody_the_second_time(
    launches: dict[str, Materialized],
) -> None:
    first, second = launches["first"], launches["second"]

    assert (first.told["launch_done"], second.told["launch_done"]) == ("3", "0")
    assert (launches["judging"].requests, first.requests, second.requests) == (3, 6, 6)
    for told in (first.told, second.told):
        assert "demo/judge (simulated)" in told["repeats"] and "100.0% (" in told["repeats"]


def test_wrong_labels_fail_the_asset_before_anybody_is_asked(
    launches: dict[str, Materialized],
) -> None:
    assert launches["wrong labels"] == Materialized({}, 3)


def test_with_no_answers_to_judge_again_nobody_is_asked(
    launches: dict[str, Materialized],
) -> None:
    told, requests = launches["no answers"]

    assert (requests, told["launch_done"]) == (3, "0")
    assert "No judge has judged anything again" in told["repeats"]
    assert told["people"].startswith("| judge")


def test_what_to_mind_is_told_in_the_ui_and_in_the_report(
    launches: dict[str, Materialized],
) -> None:
    told, page = launches["first"].told, launches["page"].told["page"]

    assert "1 of 2 labels fit no reply" in told["warnings"]
    assert "columns that are not used: 'note'" in told["warnings"]
    family = "its own family (demo/strong; all simulated)"
    assert family in told["warnings"] and family in launches["judging"].told["own_family"]
    assert told["warnings"] in page and told["repeats"] in page
