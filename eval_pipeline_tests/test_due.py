"""When a model is due again: by age, cost and attempts, and what the DuckDB file knows of them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from eval_pipeline.evaluation.predict import Launch
from eval_pipeline.evaluation.schedule import (
    DAY,
    YEAR,
    Decision,
    Standing,
    decide,
    floor_days,
    for_people,
    interval_days,
    standings,
    summed_up,
)
from eval_pipeline.journal import ATTEMPTS, SIGHTINGS, Journal
from eval_pipeline.records.model import Sighting
from eval_pipeline.records.prediction import Judgement, Prediction
from eval_pipeline.records.run import Attempt, Mode, Run
from eval_pipeline.results.build import Order
from eval_pipeline.results.queries import query
from eval_pipeline.results.warehouse import Warehouse
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
from eval_pipeline_tests.stand import STRONG, WEAK, Stand

MOMENT = datetime(2026, 11, 20, 4, tzinfo=UTC)
SECOND = timedelta(seconds=1)


def standing(
    *, age: timedelta = 0 * DAY, ago: timedelta | None = None, cost: float | None = 1.0
) -> Standing:
    """A model that was so old at its last attempt, which began so long ago."""
    last = None if ago is None else MOMENT - ago
    return Standing("maker/one", (last or MOMENT) - age, last, cost)


@pytest.mark.parametrize(
    ("years", "days"),
    [
        (0, 1.0),
        (1 / 12, 4.3),
        (0.25, 10.4),
        (0.5, 18.3),
        (1, 30.5),
        (2, 45.25),
        (5, 58.2),
        (90, 60),
    ],
)
def test_the_interval_grows_from_a_day_towards_sixty(years: float, days: float) -> None:
    assert interval_days(years * YEAR) == pytest.approx(days, abs=0.06)


@pytest.mark.parametrize(
    ("usd", "days"),
    [(None, 0), (0, 0), (5, 0), (5.01, 0.003), (27.5, 7), (32, 8.4), (50, 14), (1e9, 14), (-3, 0)],
)
def test_the_floor_grows_with_the_cost_between_5_and_50_dollars(
    usd: float | None, days: float
) -> None:
    assert floor_days(usd) == pytest.approx(days, abs=0.001)
    assert floor_days(float("nan")) == 0


@pytest.mark.parametrize(
    ("age", "cost", "days"),
    [
        (0 * DAY, 1.0, 1.0),
        (0 * DAY, None, 1.0),
        (YEAR, 1.0, 30.5),
        (0 * DAY, 27.5, 7.0),
        (0 * DAY, 500.0, 14.0),
        (YEAR, 500.0, 30.5),
        (-30 * DAY, 1.0, 1.0),
    ],
)
def test_it_is_due_from_the_very_second_on(age: timedelta, cost: float | None, days: float) -> None:
    before, then, after = (
        decide(standing(age=age, ago=days * DAY + off, cost=cost), MOMENT)
        for off in (-SECOND, 0 * DAY, SECOND)
    )

    assert (before.due, then.due, after.due) == (False, True, True)
    assert (before.due_at, then.due_at) == (MOMENT + SECOND, MOMENT)


def test_the_time_that_is_told_stays_the_same_until_it_comes() -> None:
    one = standing(age=30 * DAY, ago=1 * DAY)

    told = {decide(one, MOMENT + hours * timedelta(hours=1)).due_at for hours in range(0, 200, 4)}

    (due_at,) = told
    assert due_at is not None
    assert not decide(one, due_at - SECOND).due
    assert decide(one, due_at).due


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        (standing(), "due: never evaluated"),
        (
            standing(age=31 * DAY, ago=2.1 * DAY),
            "not due until 2026-11-22 10:29 UTC: last attempt 2.1 days ago, interval 4.4 days at "
            "an age of 31 days",
        ),
        (
            standing(age=31 * DAY, ago=5 * DAY),
            "due since 2026-11-19 12:53 UTC: last attempt 5.0 days ago, interval 4.4 days at an "
            "age of 31 days",
        ),
        (
            standing(ago=2 * DAY, cost=32.0),
            "not due until 2026-11-26 13:36 UTC: last attempt 2.0 days ago, runs cost about 32.00 "
            "USD, so at least 8.4 days apart",
        ),
        (
            standing(ago=0.5 * DAY, cost=None),
            "not due until 2026-11-20 16:00 UTC: last attempt 0.5 days ago, interval 1.0 days at "
            "an age of 0 days; what a run costs is not known",
        ),
        (
            Standing("maker/one", busy="0123456789abcdef"),
            "not due: run 01234567 is queued or running",
        ),
        (
            Standing("maker/one", barred="its gateway lists no web search", busy="1"),
            "not due: its gateway lists no web search",
        ),
    ],
)
def test_the_reason_is_a_sentence_with_numbers(known: Standing, reason: str) -> None:
    assert decide(known, MOMENT).reason == reason


def test_an_attempt_after_the_moment_or_a_model_without_a_date_breaks_nothing() -> None:
    later = Standing("maker/one", None, MOMENT + DAY)

    decision = decide(later, MOMENT)

    assert (decision.due, decision.due_at) == (False, MOMENT + 2 * DAY)
    assert "last attempt 0.0 days ago" in decision.reason


def test_people_see_who_is_due_first_and_who_comes_next() -> None:
    new = standing()
    waiting = Standing("maker/later", MOMENT, MOMENT)
    busy = Standing("maker/busy", busy="1")
    decisions = [decide(one, MOMENT) for one in (busy, waiting, new)]

    rows, sentence = [one.row for one in for_people(decisions)], summed_up(decisions)

    assert [row[:3] for row in rows] == [
        ("maker/one", "yes", "2026-11-20 04:00"),
        ("maker/later", "no", "2026-11-21 04:00"),
        ("maker/busy", "no", ""),
    ]
    assert sentence == "1 of 3 models are due; the next one is on 2026-11-21 04:00 UTC."
    assert summed_up([Decision("a/b", due=False, due_at=None, reason="")]) == (
        "0 of 1 models are due."
    )


def attempt(run_id: str, *, days: float, **changes: object) -> Attempt:
    values = {"experiment": "default", "filtered": False, "repair": False, "model": "demo/strong"}
    began = {"run_id": run_id, "began_at": NOON + days * DAY}
    return Attempt.model_validate({**values, **began, **changes})


def a_catalog(folder: Path, *records: Run | Prediction | Judgement) -> Journal:
    """A journal of these records with a catalog in which two models are selected."""
    journal = a_journal(folder, *records)
    seen = [
        Sighting(model=a_model(created_at=NOON), selected=True, seen_at=NOON + DAY),
        Sighting(model=a_model("demo/weak"), selected=True, seen_at=NOON + DAY),
        Sighting(model=a_model("demo/judge"), selected=False, seen_at=NOON + DAY),
    ]
    journal.write_whole(SIGHTINGS, "now", records=seen)
    return journal


def known_of(
    journal: Journal, *attempts: Attempt, experiment: str = "default", filtered: bool = False
) -> dict[str, Standing]:
    """What is known of the models after these attempts."""
    for one in attempts:
        journal.write_whole(ATTEMPTS, one.model, one.run_id, records=[one])
    warehouse = Warehouse(journal.root.parent / "evals.duckdb", journal)
    warehouse.publish()
    models = ("demo/strong", "demo/weak", "demo/judge", "demo/gone")
    with warehouse.reading() as db:
        found = standings(db, experiment, models, {"demo/weak": "r1"}, filtered=filtered)
    return {one.model: one for one in found}


def test_a_model_has_the_age_its_gateway_says_or_else_counts_from_when_it_was_seen(
    tmp_path: Path,
) -> None:
    known = known_of(a_catalog(tmp_path))

    assert known["demo/strong"] == Standing("demo/strong", NOON)
    assert known["demo/weak"] == Standing("demo/weak", NOON + DAY, busy="r1")
    for unknown in ("demo/judge", "demo/gone"):
        assert "materialize model_catalog" in decide(known[unknown], MOMENT).reason


@pytest.mark.parametrize(
    ("attempts", "default", "other", "part"),
    [
        ([], None, None, None),
        ([attempt("a", days=3), attempt("b", days=2)], 3, None, None),
        ([attempt("a", days=3, experiment="other")], None, 3, None),
        ([attempt("a", days=3, filtered=True)], None, None, 3),
        ([attempt("a", days=3, repair=True)], None, None, None),
        ([attempt("a", days=3, repair=True), attempt("b", days=2)], 2, None, None),
        ([attempt("a", days=3, model="demo/weak")], None, None, None),
    ],
)
def test_only_whole_evaluations_under_the_same_experiment_count_as_attempts(
    tmp_path: Path,
    attempts: list[Attempt],
    default: int | None,
    other: int | None,
    part: int | None,
) -> None:
    journal = a_catalog(tmp_path)

    found = [
        known_of(journal, *attempts)["demo/strong"],
        known_of(journal, experiment="other")["demo/strong"],
        known_of(journal, filtered=True)["demo/strong"],
    ]

    expected = [None if days is None else NOON + days * DAY for days in (default, other, part)]
    assert [one.last_attempt_at for one in found] == expected


def test_runs_of_journals_from_before_there_were_attempts_count_by_their_opening(
    tmp_path: Path,
) -> None:
    whole = a_run("whole", opened_at=NOON + 2 * DAY, scope="text")
    part = a_run("part", opened_at=NOON + 4 * DAY, scope="filtered")
    journal = a_catalog(tmp_path, whole, part)

    by_run, by_both = (
        known_of(journal)["demo/strong"],
        known_of(journal, attempt("later", days=3))["demo/strong"],
    )

    assert by_run.last_attempt_at == NOON + 2 * DAY
    assert by_both.last_attempt_at == NOON + 3 * DAY


def a_paid_run(
    run_id: str, *, day: int, usd: float | None, judging: float = 0.0, score: float | None = 1.0
) -> list[Run | Prediction | Judgement]:
    """A run of one item, judged on the day after it was opened; without a score, not complete."""
    opened, judged = NOON + day * DAY, NOON + (day + 1) * DAY
    usage = {"cost_usd": usd, "input_tokens": 1}
    answer = a_prediction(run_id=run_id, usage=usage)
    paid = {"finished_at": judged, "usage": {"cost_usd": judging}}
    return [a_run(run_id, opened_at=opened), answer, a_judgement(answer, score, **paid)]


@pytest.mark.parametrize(
    ("runs", "usd"),
    [
        ([], None),
        ([a_paid_run("1", day=1, usd=3.0, judging=0.5)], 3.5),
        ([a_paid_run(str(n), day=n, usd=10.0 - n) for n in range(5)], 8.0),
        ([a_paid_run("1", day=1, usd=3.0), a_paid_run("2", day=2, usd=9.0, score=None)], 3.0),
        ([a_paid_run(str(n), day=n, usd=9.0 - n, score=None) for n in range(3)], 7.0),
        ([a_paid_run("1", day=1, usd=None)], None),
    ],
)
def test_a_run_costs_what_the_dearest_of_the_latest_three_has_cost(
    tmp_path: Path, runs: list[list[Run | Prediction | Judgement]], usd: float | None
) -> None:
    journal = a_catalog(tmp_path, *(record for run in runs for record in run))

    assert known_of(journal)["demo/strong"].run_cost_usd == usd


def test_every_judge_of_a_run_is_paid_and_a_trial_of_another_prompt_only_once(
    tmp_path: Path,
) -> None:
    run, answer, verdict = a_paid_run("1", day=1, usd=3.0, judging=0.5)
    assert isinstance(answer, Prediction)
    also = a_judgement(answer, judge="demo/other", usage={"cost_usd": 0.25})
    trial = a_judgement(answer, judge_version="v2", usage={"cost_usd": 0.5})

    known = known_of(a_catalog(tmp_path, run, answer, verdict, also, trial))

    assert known["demo/strong"].run_cost_usd == 3.75


def freshness(warehouse: Warehouse, columns: str) -> list[tuple[object, ...]]:
    with warehouse.reading() as db:
        return db.sql(f"select model, experiment, {columns} from freshness order by all").fetchall()


def test_results_are_as_old_as_the_latest_complete_run_of_the_published_version(
    tmp_path: Path,
) -> None:
    complete = a_paid_run("1", day=1, usd=1.0)
    again = a_judgement(a_prediction(run_id="1"), judge="demo/other", finished_at=NOON + 9 * DAY)
    unfinished = a_paid_run("2", day=5, usd=1.0, score=None)
    journal = a_catalog(tmp_path, *complete, again, *unfinished)
    known_of(journal, attempt("failed", days=7))
    warehouse = Warehouse(tmp_path / "evals.duckdb", journal)

    fresh = freshness(warehouse, "last_complete_at, last_attempt_at, attempts")
    with warehouse.reading() as db:
        shown = query(db, "summaries/freshness").fetchall()
        ((days,),) = db.sql("select max(stale_days) from freshness").fetchall()

    naive = NOON.replace(tzinfo=None)
    assert fresh == [
        ("demo/strong", "default", naive + 2 * DAY, naive + 7 * DAY, 3),
        ("demo/weak", None, None, None, 0),
    ]
    assert days * DAY == pytest.approx(datetime.now(UTC) - NOON - 2 * DAY, abs=timedelta(minutes=1))
    assert shown[0] == ("demo/weak", "none", None, None, None, None)
    assert shown[1][:3] == ("demo/strong", "default", "2025-01-03 12:00")


def test_a_run_of_another_benchmark_version_makes_nothing_fresh(tmp_path: Path) -> None:
    journal = a_catalog(tmp_path, *a_paid_run("1", day=1, usd=7.0))
    newer = a_benchmark(a_question("new"), loaded_at=NOON + DAY)
    a_journal(tmp_path, benchmark=newer)

    known = known_of(journal)["demo/strong"]

    assert (known.last_attempt_at, known.run_cost_usd) == (NOON + DAY, 7.0)
    assert freshness(Warehouse(tmp_path / "evals.duckdb", journal), "stale_days") == [
        ("demo/strong", "default", None),
        ("demo/weak", None, None),
    ]


def test_one_who_asks_from_another_time_zone_sees_the_same_age(tmp_path: Path) -> None:
    journal = a_catalog(tmp_path, *a_paid_run("1", day=1, usd=1.0))
    known_of(journal)

    with Warehouse(tmp_path / "evals.duckdb", journal).reading() as db:
        ages: list[float] = []
        for zone in ("UTC", "Pacific/Auckland"):
            db.execute(f"set timezone = '{zone}'")
            ages += db.sql("select max(stale_days) from freshness").fetchone() or ()

    assert ages[0] == pytest.approx(ages[1], abs=0.01)


def test_to_publish_attempts_computes_no_number_anew(tmp_path: Path) -> None:
    order = Order(Journal(tmp_path), {}, ["attempts", "sightings"], tmp_path / "evals.duckdb")

    assert order.derives == []
    assert [stream.name for stream in order.loads] == ["sightings", "attempts"]


def attempts_of(stand: Stand, model: str = "demo/strong") -> list[tuple[str, bool, bool]]:
    return [(one.run_id, one.filtered, one.repair) for one in stand.journal.read(ATTEMPTS, model)]


@pytest.mark.parametrize(
    ("launch", "plan", "kept"),
    [
        (Launch("a"), {}, ("a", False, False)),
        (Launch("a", Mode.FRESH, retry_of="b"), {}, ("a", False, False)),
        (Launch("a"), {"text_only": True}, ("a", False, False)),
        (Launch("a"), {"max_samples": 1}, ("a", True, False)),
        (Launch("a"), {"categories": ("Math",)}, ("a", True, False)),
        (Launch("a"), {"test_filter": "q1"}, ("a", True, False)),
        # There is nothing to fix yet, so that a run is opened.
        (Launch("a", Mode.FIX), {}, ("a", False, False)),
        (Launch("a", continue_run="none such"), {}, ("a", False, True)),
    ],
)
def test_an_attempt_tells_what_kind_of_launch_it_was(
    stand: Stand, launch: Launch, plan: dict[str, object], kept: tuple[str, bool, bool]
) -> None:
    stand.predict(STRONG, launch=launch, settings=stand.settings.overridden({"plan": plan}))

    assert attempts_of(stand) == [kept]
    (one,) = stand.journal.read(ATTEMPTS)
    assert one.experiment == "default"
    assert abs(datetime.now(UTC) - one.began_at) < timedelta(minutes=1)


def test_mending_a_run_is_no_evaluation_of_its_own(stand: Stand) -> None:
    stand.predict(STRONG, launch=Launch("a"))

    stand.predict(STRONG, launch=Launch("b", Mode.FIX))

    assert attempts_of(stand) == [("a", False, False), ("b", False, True)]


def test_what_fails_before_anybody_is_asked_was_an_attempt_all_the_same(
    tmp_path: Path, stand: Stand
) -> None:
    no_key = settings_in(tmp_path, gateways=[{"name": "demo", "kind": "openrouter"}])

    (tally,) = stand.predict(STRONG, settings=no_key)

    assert tally.failed
    assert attempts_of(stand) == [("run-1", False, False)]


def test_a_model_that_is_not_asked_since_it_can_not_search_was_not_attempted(stand: Stand) -> None:
    searching = stand.settings.overridden({"experiment": "web_search"})

    stand.predict(WEAK, settings=searching)

    assert attempts_of(stand, "demo/weak") == []


def test_an_attempt_that_can_not_be_written_down_asks_nobody(stand: Stand) -> None:
    (stand.journal.root / "attempts").write_text("in the way")

    (tally,) = stand.predict(STRONG)

    assert tally.failed
    assert stand.gateway.requests.total() == 0
